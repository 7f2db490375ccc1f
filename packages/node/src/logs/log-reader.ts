import { type FSWatcher, watch } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { CriDecoder } from './cri-log.js'

export interface LogReadOptions {
  file: string
  /** With `follow` reading goes on until `ended` settles and everything is read. */
  follow?: { ended: Promise<unknown> }
  tailLines?: number | undefined
  sinceMs?: number | undefined
  timestamps?: boolean | undefined
  limitBytes?: number | undefined
  signal?: AbortSignal | undefined
}

const chunkBytes = 64 * 1024
const longestWaitMs = 1_000

/** A container's output as it was written. A log that does not exist is empty. Ends at once when `signal` aborts. */
export async function* readLog(options: LogReadOptions): AsyncGenerator<Uint8Array> {
  const decoder = new CriDecoder({
    timestamps: options.timestamps ?? false,
    ...(options.sinceMs === undefined ? {} : { sinceMs: options.sinceMs }),
  })
  let leftBytes = options.limitBytes ?? Number.POSITIVE_INFINITY
  for await (const bytes of rawBytes(options)) {
    const output = decoder.push(bytes)
    if (output.length === 0) continue
    yield output.length > leftBytes ? output.subarray(0, leftBytes) : output
    leftBytes -= output.length
    if (leftBytes <= 0) return
  }
}

async function* rawBytes({ file, follow, tailLines, signal }: LogReadOptions): AsyncGenerator<Buffer> {
  const isAborted = (): boolean => signal?.aborted ?? false
  let handle = await openIfThere(file)
  let isEnded = follow === undefined
  const ended = follow?.ended.then(() => {
    isEnded = true
  })
  const changes = follow ? changesOf(file) : undefined
  try {
    let offset = handle && tailLines !== undefined ? await tailOffset(handle, tailLines) : 0
    while (!isAborted()) {
      const isLast = isEnded
      handle ??= await openIfThere(file)
      for (let read = handle ? await readAt(handle, offset) : undefined; read; read = await readAt(handle!, offset)) {
        offset += read.length
        yield read
        if (isAborted()) return
      }
      if (handle && (await isReplaced(handle, file))) {
        await handle.close()
        handle = undefined
        offset = 0
        continue
      }
      if (isLast) return
      await changes!.next(ended!, signal)
    }
  } finally {
    changes?.close()
    await handle?.close()
  }
}

async function readAt(handle: FileHandle, position: number): Promise<Buffer | undefined> {
  const buffer = Buffer.allocUnsafe(chunkBytes)
  const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position)
  return bytesRead > 0 ? buffer.subarray(0, bytesRead) : undefined
}

/** Where the last `lines` lines begin. */
async function tailOffset(handle: FileHandle, lines: number): Promise<number> {
  const { size } = await handle.stat()
  if (lines <= 0) return size
  let position = size
  let seen = 0
  while (position > 0) {
    const length = Math.min(chunkBytes, position)
    position -= length
    const { buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, position)
    for (let index = length - 1; index >= 0; index--) {
      // The newline at the very end closes the last line and begins none.
      if (buffer[index] !== 0x0a || position + index === size - 1) continue
      if (++seen === lines) return position + index + 1
    }
  }
  return 0
}

async function openIfThere(file: string): Promise<FileHandle | undefined> {
  try {
    return await open(file, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Whether rotation has put another file in its place. */
async function isReplaced(handle: FileHandle, file: string): Promise<boolean> {
  const now = await stat(file).catch(() => undefined)
  return now !== undefined && now.ino !== (await handle.stat()).ino
}

function changesOf(file: string): {
  next(ended: Promise<unknown>, signal?: AbortSignal): Promise<void>
  close(): void
} {
  let isChanged = false
  let wake: (() => void) | undefined
  let watcher: FSWatcher | undefined
  const onChange = (): void => {
    isChanged = true
    wake?.()
  }
  const start = (): void => {
    try {
      watcher ??= watch(file, onChange).on('error', () => {})
    } catch {
      // Not there yet, or no more watches to be had: the timer below finds the change a little later.
    }
  }
  return {
    async next(ended, signal) {
      start()
      if (!isChanged) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, watcher ? longestWaitMs : longestWaitMs / 10)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
          signal?.addEventListener('abort', wake, { once: true })
          void ended.then(wake)
        })
        if (wake) signal?.removeEventListener('abort', wake)
        wake = undefined
      }
      isChanged = false
    },
    close: () => watcher?.close(),
  }
}
