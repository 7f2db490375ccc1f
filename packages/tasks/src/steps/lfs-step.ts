import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type DaemonClient, type TaskWarning, taskWarning } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import type { SandboxContext } from '../environment/sandbox-context.js'
import type { LfsObject } from '../repository/lfs-objects.js'
import type { LfsPointer } from '../repository/lfs-pointer.js'
import { scratchFiles } from '../sandbox/collected-work.js'
import { lfsFilterScript } from '../sandbox/lfs-filter.js'
import type { Workspace } from '../sandbox/workspace.js'
import { TaskError } from '../task-error.js'
import type { StepContext } from './step.js'

/** Contents of Git LFS files one result may bring. */
const maxBytes = 8 * 1024 ** 3

/** Puts the contents of Git LFS files into the sandbox, where the checkout finds them. Answers what the script needs. */
export async function placeLfsObjects(
  { task, signal }: Pick<SandboxContext, 'task' | 'signal'>,
  daemon: DaemonClient,
  { scratch }: Workspace,
  objects: readonly LfsObject[],
): Promise<{ LFS_FILTER: string }> {
  if (!task.spec.repository.lfs) return { LFS_FILTER: '' }
  const filter = scratchFiles.lfsFilter(scratch)
  await daemon.writeFile(filter, lfsFilterScript, { mkdirs: true, signal })
  for (const { oid, path } of objects)
    await daemon.writeFile(scratchFiles.lfsObject(scratch, oid), createReadStream(path), { mkdirs: true, signal })
  return { LFS_FILTER: filter }
}

/**
 * Takes the contents of a result's Git LFS files into the record of the task; what it already has is not taken again. A
 * content that neither has is a warning: the file may have been copied from a commit whose contents only the server has.
 */
export async function takeLfsObjects(context: StepContext, pointers: readonly LfsPointer[]): Promise<TaskWarning[]> {
  const { record } = context
  const wanted: LfsPointer[] = []
  for (const pointer of pointers)
    if ((await record.find(`lfs/${pointer.oid}`))?.sizeBytes !== pointer.sizeBytes) wanted.push(pointer)
  if (wanted.length === 0) return []
  if (pointers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) > maxBytes)
    throw new TaskError('ResultTooLarge', `the Git LFS files of the result are larger than ${maxBytes} bytes`)
  const missing = await context.openSandbox().then(
    ({ daemon }) => takeEach(daemon, context, wanted),
    (error: unknown) => {
      if (context.signal.aborted) throw error
      context.log.warn('contents of Git LFS files could not be read', { code: errorCode(error), error })
      return wanted.map(({ oid }) => oid)
    },
  )
  return missing.map((oid) => taskWarning('LfsObjectMissing', { detail: oid }))
}

/** The same for a checkpoint, which knows only what the sandbox says it needs. */
export async function takeLfsFrom(daemon: DaemonClient, context: StepContext, oids: readonly string[]): Promise<void> {
  const { scratch } = await context.findWorkspace()
  const wanted: LfsPointer[] = []
  for (const oid of oids) {
    if (await context.record.find(`lfs/${oid}`)) continue
    const sizeBytes = (await daemon.statFile(scratchFiles.lfsObject(scratch, oid), { signal: context.signal }))?.size
    if (sizeBytes !== undefined && sizeBytes <= maxBytes) wanted.push({ oid, sizeBytes })
  }
  await takeEach(daemon, context, wanted)
}

/** Answers the hashes of what the sandbox does not have. */
async function takeEach(daemon: DaemonClient, context: StepContext, wanted: readonly LfsPointer[]): Promise<string[]> {
  const { record, signal } = context
  const { scratch, repository } = await context.findWorkspace()
  const missing: string[] = []
  for (const pointer of wanted) {
    // The second is where an agent's own git-lfs puts them.
    const places = [
      scratchFiles.lfsObject(scratch, pointer.oid),
      scratchFiles.lfsObject(`${repository}/.git`, pointer.oid),
    ]
    let isTaken = false
    for (const path of places) {
      if (isTaken || (await daemon.statFile(path, { signal }))?.size !== pointer.sizeBytes) continue
      const content = verified(daemon.readFileStream(path, { signal }), pointer)
      isTaken = await record.write(`lfs/${pointer.oid}`, content, { signal }).then(
        () => true,
        (error: unknown) => {
          if (error instanceof WrongContent) return false
          throw error
        },
      )
    }
    if (!isTaken) missing.push(pointer.oid)
  }
  return missing
}

/** What the push stores with Git LFS. */
export async function keptLfsObjects(
  { record, task }: StepContext,
  baseCommit: string,
): Promise<{ objects: LfsObject[]; baseCommit: string } | undefined> {
  if (!task.spec.repository.lfs) return undefined
  const objects: LfsObject[] = []
  for (const oid of await record.list('lfs'))
    objects.push({
      oid,
      sizeBytes: (await record.find(`lfs/${oid}`))?.sizeBytes ?? 0,
      path: await record.localFile(`lfs/${oid}`),
    })
  return { objects, baseCommit }
}

class WrongContent extends Error {}

/** Passes a content on and fails at its end, or where it is too long, unless it has the hash it was asked for by. */
async function* verified(chunks: AsyncIterable<Uint8Array>, { oid, sizeBytes }: LfsPointer): AsyncIterable<Uint8Array> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > sizeBytes) throw new WrongContent(oid)
    hash.update(chunk)
    yield chunk
  }
  if (size !== sizeBytes || hash.digest('hex') !== oid) throw new WrongContent(oid)
}
