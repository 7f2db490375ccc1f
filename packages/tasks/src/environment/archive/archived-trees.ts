import { randomUUID } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import { type Clock, SnapshotError } from '@corral/ports'
import { anySignal, type DaemonClient } from '@corral/protocol'
import { type AgentTask, isNotFound, Pods, type Stored } from '@corral/resources'
import { checkedOutMarker } from '../../sandbox/checked-out-marker.js'
import { runCommand } from '../../sandbox/run-command.js'
import type { Workspace } from '../../sandbox/workspace.js'
import { TaskError } from '../../task-error.js'
import type { SnapshotTrees } from '../build/snapshot-trees.js'
import type { ArchiveDirectory } from './archive-directory.js'

/** A sandbox that stops sending must not keep the build, and the tasks that wait for it, for ever. */
const sealMs = 30 * 60_000

export interface ArchivedTreesOptions {
  directory: ArchiveDirectory
  client: Pick<KubeClient, 'find'>
  namespace: string
  /** What all of them together may take; a single one that is larger is not kept. */
  budgetBytes: number
  clock: Clock
}

/**
 * Kept as archives beside the platform's own records and copied into each sandbox, through its daemon: for clusters whose nodes
 * are not ours, whatever storage they have. Copying takes time by size; a volume could not be given to a sandbox that runs already.
 */
export function archivedTrees({
  directory,
  client,
  namespace,
  budgetBytes,
  clock,
}: ArchivedTreesOptions): SnapshotTrees {
  return {
    isReady: () => true,
    list: () => directory.list(),
    find: (name) => directory.find(name),
    inUse: (name) => (directory.isRead(name) ? ['copying'] : []),
    remove: (name) => directory.remove(name),
    givesCheckouts: () => false, // a copy of the whole tree is no quicker than the repository's bundle
    async seal({ name, podUid, paths, secrets = [], labels = {}, signal }, sandbox) {
      const { daemon } = await sandbox.openSandbox()
      const timeout = AbortSignal.timeout(sealMs)
      const reading = { signal: anySignal([timeout, ...(signal ? [signal] : [])]) }
      const kept = outermost(paths, await sandbox.findWorkspace())
      await refuseUnreadable(daemon, sandbox.task, kept, reading.signal)
      const keeping = directory.keep({
        ...{ name, podUid, namespace, secrets, labels: { ...labels } },
        trees: kept.map((path) => ({
          path,
          archive: () => daemon.getTar(path, reading),
        })),
        maxBytes: budgetBytes,
        createdAt: clock.now().toISOString(),
      })
      await keeping.catch((error: unknown) => {
        if (!timeout.aborted || signal?.aborted) throw error
        throw new SnapshotError('Failed', `what set-up left was not read within ${sealMs / 60_000} minutes`, {
          cause: error,
        })
      })
    },
    async attach(sandbox, snapshot) {
      const info = directory.find(snapshot)
      const { task, signal } = sandbox
      const { daemon } = await sandbox.openSandbox()
      const workspace = await sandbox.findWorkspace()
      const before = await readMarker(daemon, workspace, signal)
      if (before?.name === snapshot && before.isWhole) return true
      if (!info) return false
      // An earlier run of the step went on without a snapshot: what is checked out stays.
      if (await daemon.statFile(checkedOutMarker(workspace.scratch, task.metadata.uid), { signal })) return false
      if (before) await clear(daemon, task, info.paths, signal)
      const marker = markerPath(workspace)
      await daemon.writeFile(marker, `half ${snapshot}`, { mkdirs: true, signal })
      for (const [index, path] of info.paths.entries())
        await directory.read(snapshot, index, (archive) => daemon.putTar(path, archive, { signal }))
      await daemon.writeFile(marker, `whole ${snapshot}`, { signal })
      return true
    },
    async attached(sandbox) {
      const { daemon } = await sandbox.openSandbox()
      return (await readMarker(daemon, await sandbox.findWorkspace(), sandbox.signal))?.name
    },
    rootOf: (task) => imagesOf(client, task),
  }
}

/** A home directory that holds the workspace holds what the platform keeps there as well: only the repository is kept then. */
function outermost(paths: readonly string[], { repository }: Workspace): string[] {
  return paths.filter((path) => path === repository || !repository.startsWith(`${path.replace(/\/+$/, '')}/`))
}

const unreadableScript = `find "$@" -xdev ! -type l \\( ! -readable -o -type d ! -executable \\) 2> /dev/null | head -n 3
`

/** tar would end in the middle of such a tree, every time. A sandbox without such a `find` is looked at by tar alone. */
async function refuseUnreadable(
  daemon: DaemonClient,
  { metadata }: Stored<AgentTask>,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { stdout } = await runCommand(
    daemon,
    `${metadata.uid}.unreadable`,
    { argv: ['/bin/sh', '-c', unreadableScript, 'unreadable', ...paths] },
    { signal, isRepeatable: true, timeoutMs: 10 * 60_000 },
  )
  const found = stdout.split('\n').filter(Boolean)
  if (found.length > 0) throw new SnapshotError('Failed', `set-up left what cannot be read: ${found.join(', ')}`)
}

const markerPath = ({ scratch }: Workspace): string => `${scratch}/snapshot`

async function readMarker(
  daemon: DaemonClient,
  workspace: Workspace,
  signal: AbortSignal,
): Promise<{ name: string; isWhole: boolean } | undefined> {
  try {
    const text = Buffer.from(await daemon.readFile(markerPath(workspace), { signal, maxBytes: 1024 })).toString('utf8')
    const [, state, name] = /^(half|whole) ([a-z0-9-]{1,253})$/.exec(text) ?? []
    return name ? { name, isWhole: state === 'whole' } : undefined
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** Some caches are read-only, directories and all. */
const clearScript = `for path in "$@"; do
  if [ ! -d "$path" ]; then continue; fi
  chmod -R u+rwX "$path" 2> /dev/null
  find "$path" -xdev -mindepth 1 -delete
done
`

/** Takes away what an earlier try has unpacked: not everything may be written over. */
async function clear(
  daemon: DaemonClient,
  { metadata }: Stored<AgentTask>,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { exit, tail } = await runCommand(
    daemon,
    `${metadata.uid}.clear-${randomUUID()}`,
    { argv: ['/bin/sh', '-c', clearScript, 'clear', ...paths] },
    { signal, isRepeatable: true, timeoutMs: 10 * 60_000 },
  )
  if (exit.exit_code !== 0) throw new TaskError('SandboxLost', `half a snapshot could not be removed: ${tail}`)
}

/** The digests of the images of its pod: a template's new image may have other tools under the same name. */
async function imagesOf(client: Pick<KubeClient, 'find'>, { metadata, status }: Stored<AgentTask>): Promise<string> {
  const name = status?.sandbox?.podName
  const pod = name ? await client.find(Pods, { namespace: metadata.namespace ?? 'default', name }) : undefined
  const ids = (pod?.status?.containerStatuses ?? []).map(
    ({ name: container, imageID, image }) => `${container}=${imageID || image}`,
  )
  return ids.sort().join(' ')
}
