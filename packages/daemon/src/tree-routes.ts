import { watch as watchEntry } from 'node:fs'
import { lstat, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, matchesGlob } from 'node:path'
import { CorralError, daemonLimits, type FileChange, type TreeEntry } from '@corral/protocol'
import { entriesOf, fileInfo } from './file-routes.js'
import { pullStream } from './pull-stream.js'
import { type TreeWatch, watchTree } from './tree-watch.js'

const heartbeatMs = 10_000
const maxPending = 10_000
const linesType = { 'content-type': 'application/x-ndjson' }

/** Everything below a directory, a line of JSON each. Links are not followed. */
export async function getTree(directory: string, url: URL): Promise<Response> {
  if (!(await stat(directory)).isDirectory())
    throw new CorralError('NotADirectory', `"${directory}" is not a directory`)
  const entries = walk(directory, url.searchParams.get('glob') ?? undefined)
  return lines(entries, async () => void (await entries.return(undefined)))
}

async function* walk(root: string, glob: string | undefined): AsyncGenerator<TreeEntry> {
  const pending: { at: string | Buffer; inside: string }[] = [{ at: root, inside: '' }]
  let count = 0
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    for await (const { name, place } of readableEntries(directory.at)) {
      const info = await lstat(place).catch(() => undefined)
      if (!info) continue
      const inside = join(directory.inside, name)
      if (info.isDirectory()) pending.push({ at: place, inside })
      if (glob !== undefined && !matchesGlob(inside, glob)) continue
      count += 1
      if (count > daemonLimits.treeEntries) {
        throw new CorralError('OutputLimitExceeded', `"${root}" has more than ${daemonLimits.treeEntries} entries`)
      }
      yield { ...fileInfo(name, info), path: inside }
    }
  }
}

/** A directory that went away or is not ours to read has no entries. */
async function* readableEntries(directory: string | Buffer): ReturnType<typeof entriesOf> {
  try {
    yield* entriesOf(directory)
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error
  }
}

/**
 * Changes below a path as they are seen, after one `ready`; a heartbeat keeps a quiet line alive. Ends when the directory that
 * is watched is deleted: nothing that comes under its name later would be seen.
 */
export async function watchPath(path: string, signal: AbortSignal): Promise<Response> {
  const info = await stat(path)
  const queue: FileChange[] = [{ type: 'ready' }]
  let wake = () => {}
  let failure: Error | undefined
  const push = (change: FileChange) => {
    if (queue.length >= maxPending) queue.splice(0, queue.length, { type: 'overflow' })
    queue.push(change)
    wake()
  }
  const onError = (error: unknown): void => {
    failure = error instanceof Error ? error : new Error(String(error))
    wake()
  }
  let isOver = false
  const onChange = (type: 'created' | 'modified' | 'deleted', inside: string): void => {
    if (isOver) return
    isOver = type === 'deleted' && inside === ''
    push({ type, path: inside })
  }
  const watcher = info.isDirectory()
    ? await watchTree(path, { onChange, onError, signal })
    : watchFile(await realpath(path), basename(path), onChange, onError)
  async function* changes(): AsyncGenerator<FileChange> {
    while (!signal.aborted) {
      if (failure) throw failure
      const next = queue.shift()
      if (next) {
        yield next
        continue
      }
      if (isOver) return
      let timer: NodeJS.Timeout | undefined
      const isQuiet = await new Promise<boolean>((resolve) => {
        wake = () => resolve(false)
        timer = setTimeout(() => resolve(true), heartbeatMs)
      })
      clearTimeout(timer)
      if (isQuiet) yield { type: 'heartbeat' }
    }
  }
  const iterator = changes()
  return lines(iterator, async () => {
    watcher.close()
    wake()
  })
}

/**
 * Watches the directory of a file: a watch on the file itself sees nothing more once another file takes its name, which is how
 * editors and `putFile` write.
 */
function watchFile(
  path: string,
  name: string,
  onChange: (type: 'created' | 'modified' | 'deleted', inside: string) => void,
  onError: (error: unknown) => void,
): TreeWatch {
  const watcher = watchEntry(dirname(path), { persistent: false }, (event, changed) => {
    if (changed !== basename(path)) return
    if (event === 'change') return onChange('modified', name)
    // "rename" stands for both: whether it is there tells which.
    lstat(path).then(
      () => onChange('created', name),
      () => onChange('deleted', name),
    )
  })
  watcher.on('error', onError)
  return watcher
}

function lines<T>(values: AsyncGenerator<T>, dispose: () => Promise<void>): Response {
  const next = async (): Promise<Uint8Array | undefined> => {
    const { done, value } = await values.next()
    return done ? undefined : Buffer.from(`${JSON.stringify(value)}\n`)
  }
  return new Response(pullStream(next, dispose), { headers: linesType })
}
