import type { FileHandle } from 'node:fs/promises'

/** Written at once. Each write is a round trip to a thread: for every piece of a connection alone they take most of the time. */
const batchBytes = 512 * 1024
/** So that a body of single bytes does not become a list of half a million of them. */
const batchChunks = 512

/** Writes one batch while the next is on its way; in turns a large upload takes the time of both. */
export async function writeAll(file: FileHandle, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  let written: Promise<void> = Promise.resolve()
  let batch: Uint8Array[] = []
  let bytes = 0
  const write = async (): Promise<void> => {
    await written
    written = writeBatch(file, batch)
    // It is awaited before the next one; until then a failure must not count as one that is not handled.
    written.catch(() => undefined)
    batch = []
    bytes = 0
  }
  try {
    for await (const chunk of chunks) {
      batch.push(chunk)
      bytes += chunk.length
      if (bytes >= batchBytes || batch.length >= batchChunks) await write()
    }
    await write()
  } finally {
    await written
  }
}

/** The system may take less than it was given, on a disk that is nearly full for one. */
async function writeBatch(file: FileHandle, batch: readonly Uint8Array[]): Promise<void> {
  let left = batch.filter(({ length }) => length > 0)
  while (left.length > 0) {
    let { bytesWritten } = await file.writev(left)
    const rest: Uint8Array[] = []
    for (const chunk of left) {
      if (bytesWritten < chunk.length) rest.push(chunk.subarray(bytesWritten))
      bytesWritten = Math.max(0, bytesWritten - chunk.length)
    }
    left = rest
  }
}
