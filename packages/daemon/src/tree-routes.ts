import { watch as watchEntry } from 'node:fs'
import { lstat, opendir, stat } from 'node:fs/promises'
import { join, matchesGlob, relative } from 'node:path'
import { CorralError, daemonLimits, type FileChange, type TreeEntry } from '@corral/protocol'
import { fileInfo } from './file-routes.js'
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
  const pending = [root]
  let count = 0
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    // A directory that went away or is not ours to read has no entries.
    const opened = await opendir(directory).catch(() => undefined)
    if (!opened) continue
    for await (const entry of opened) {
      const path = join(directory, entry.name)
      const info = await lstat(path).catch(() => undefined)
      if (!info) continue
      if (info.isDirectory()) pending.push(path)
      const inside = relative(root, path)
      if (glob !== undefined && !matchesGlob(inside, glob)) continue
      count += 1
      if (count > daemonLimits.treeEntries) {
        throw new CorralError('OutputLimitExceeded', `"${root}" has more than ${daemonLimits.treeEntries} entries`)
      }
      yield { ...fileInfo(entry.name, info), path: inside }
    }
  }
}

/** Changes below a path as they are seen, after one `ready`; a heartbeat keeps a quiet line alive. */
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
  const onChange = (type: 'created' | 'modified' | 'deleted', inside: string): void => push({ type, path: inside })
  const watcher = info.isDirectory()
    ? await watchTree(path, { onChange, onError, signal })
    : watchFile(path, onChange, onError)
  async function* changes(): AsyncGenerator<FileChange> {
    while (!signal.aborted) {
      if (failure) throw failure
      const next = queue.shift()
      if (next) {
        yield next
        continue
      }
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

function watchFile(
  path: string,
  onChange: (type: 'created' | 'modified' | 'deleted', inside: string) => void,
  onError: (error: unknown) => void,
): TreeWatch {
  const watcher = watchEntry(path, (event, name) => {
    const inside = name ?? ''
    if (event === 'change') return onChange('modified', inside)
    // "rename" stands for both: whether it is there tells which.
    lstat(path).then(
      () => onChange('created', inside),
      () => onChange('deleted', inside),
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
