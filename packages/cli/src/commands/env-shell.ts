import { setTimeout } from 'node:timers/promises'
import type { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import type { EnvironmentSettingsView, EnvironmentView } from '@corral/protocol'
import { CliError } from '../cli-error.js'
import type { requirePlatform } from '../client/find-platform.js'
import { attachTerminal } from '../client/terminal.js'
import type { CommonOptions } from './common.js'
import { enterRepository, loginShell } from './task-shell.js'

const dayMs = 24 * 60 * 60_000
/** An image has to start, and a tree is copied where it cannot be mounted. */
const followedMs = 5 * 60_000
const lookEveryMs = 50

type ShellOptions = CommonOptions & { namespace: string; failed?: boolean }

/** A terminal in the newest snapshot of an environment, or in the sandbox of its last build, which failed. */
export async function environmentShell(
  platform: Awaited<ReturnType<typeof requirePlatform>>,
  environment: EnvironmentView,
  given: ShellOptions,
): Promise<void> {
  const { sandboxClient } = await import('../client/kube-access.js')
  const options = { ...given, ...(platform.kubeconfig ? { kubeconfig: platform.kubeconfig } : {}) }
  await using client = await sandboxClient(options)
  const tty = process.stdin.isTTY === true && process.stdout.isTTY === true
  const open = async (name: string, command: string[]): Promise<void> => {
    const process_ = await client.sandboxes.execStream({ name }, command, { stdin: true, tty })
    process.exitCode = await attachTerminal(process_, { tty, stdin: true })
  }
  if (options.failed) {
    const { build } = environment
    const name = build?.state === 'Failed' ? build.sandbox : undefined
    if (!name || !(await client.sandboxes.objects.find(name)))
      throw new CliError('there is no sandbox of a build that failed', {
        hint: `It is kept for a quarter of an hour. Build again: corral env build ${environment.name}`,
      })
    // The client is closed when this returns.
    await open(name, shellIn(build?.settings))
    return
  }
  const [newest] = environment.snapshots
  if (!newest)
    throw new CliError(`${environment.name} has nothing built`, {
      hint: `Build it with \`corral env build ${environment.name}\`.`,
    })
  const annotations = await annotationsFor(newest)
  await using sandbox = await client.sandboxes.create({ pool: 'default', podAnnotations: annotations, ttlMs: dayMs })
  await followed(client, sandbox.name, options, newest)
  await open(sandbox.name, shellIn(newest.settings))
}

type Snapshot = EnvironmentView['snapshots'][number]

/** What makes a sandbox one like that of the build. */
async function annotationsFor({ name, settings }: Snapshot): Promise<Record<string, string>> {
  const { imageAnnotation, resourcesAnnotation, resourcesText, snapshotAnnotation } = await import('@corral/resources')
  const { image, resources } = settings ?? {}
  return {
    [snapshotAnnotation]: name,
    ...(image ? { [imageAnnotation]: image } : {}),
    ...(resources ? { [resourcesAnnotation]: resourcesText(resources) } : {}),
  }
}

/** Waits until the node says that the sandbox has the snapshot, and the image, which starts it anew. */
async function followed(
  client: AgentSandboxClient,
  name: string,
  options: ShellOptions & { kubeconfig?: string },
  { name: snapshot, settings }: Snapshot,
): Promise<void> {
  const { kubeClientFromConfig, loadKubeConfig } = await import('@corral/kube')
  const { imageCondition, Pods, podNameOf, snapshotCondition } = await import('@corral/resources')
  const { kubeconfig: path, namespace } = options
  const kube = kubeClientFromConfig(await loadKubeConfig(path ? { path } : {}))
  const wanted = [
    { type: snapshotCondition, word: snapshot },
    ...(settings?.image ? [{ type: imageCondition, word: settings.image }] : []),
  ]
  let answer = 'its node does not say'
  for (const deadline = Date.now() + followedMs; Date.now() < deadline; await setTimeout(lookEveryMs)) {
    const sandbox = await client.sandboxes.objects.find(name)
    const pod = sandbox && (await kube.find(Pods, { namespace, name: podNameOf(sandbox) }))
    const conditions = wanted.map(({ type, word }) =>
      pod?.status?.conditions?.find((each) => each.type === type && each.message?.startsWith(`${word}: `)),
    )
    if (conditions.every((each) => each?.status === 'True')) return
    const waiting = conditions.find((each) => each && each.status !== 'True')
    answer = waiting?.message ?? answer
    if (waiting?.reason === 'NotFound')
      throw new CliError(answer, { hint: 'Build it again: `corral env build --no-cache`.' })
  }
  throw new CliError(`the sandbox is not as ${snapshot} was built: ${answer}`)
}

/** A shell in the repository. Directories of it for PATH are relative, as the build had them. */
function shellIn({ env, path }: Pick<EnvironmentSettingsView, 'env' | 'path'> = { env: {}, path: [] }): string[] {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const prepend =
    'count=$1; shift; while [ "$count" -gt 0 ]; do case $1 in /*) PATH=$1:$PATH ;; *) PATH=$PWD/$1:$PATH ;; esac; shift; count=$((count-1)); done; unset count; export PATH; exec "$@"'
  return [
    ...['/usr/bin/env', ...variables, '/bin/sh', '-c', enterRepository, 'sh'],
    ...['/bin/sh', '-c', prepend, 'sh', String(path.length), ...path.toReversed()],
    ...loginShell,
  ]
}
