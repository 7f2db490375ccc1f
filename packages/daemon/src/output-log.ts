import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { maxOutputPayloadBytes, type OutputStream } from '@corral/protocol'
import { defaultKeep, type OutputGap, type OutputKeep, punchHole, readGap, writeGap } from './output-gap.js'

/**
 * The output of one process on disk: `stdout` and `stderr` hold the bytes, written by the process's own pipes without
 * us; `index` puts them in one order. Each index record is 8 bytes: the stream (1 or 2), three zero bytes, and how many
 * bytes of it come next (32 bit, big-endian). A byte's offset is its place in that order. What is indexed never moves,
 * so an offset means the same to every reader and after every restart. Order within a stream is exact; between the two
 * it is the order in which growth was seen, a few milliseconds apart. Of an output that is too long the middle is dropped:
 * its bytes go, its offsets stay.
 */
export class OutputLog {
  readonly #directory: string
  readonly #index: FileHandle
  #indexBytes: number
  readonly #seen: Record<OutputStream, number>
  readonly #keep: OutputKeep
  #gap: OutputGap | undefined
  #canDrop = true

  private constructor(
    directory: string,
    index: FileHandle,
    indexBytes: number,
    seen: Record<OutputStream, number>,
    keep: OutputKeep,
    gap: OutputGap | undefined,
  ) {
    this.#directory = directory
    this.#index = index
    this.#indexBytes = indexBytes
    this.#seen = seen
    this.#keep = keep
    this.#gap = gap
  }

  /** Opens the log in a record's directory, creating or picking up the index. */
  static async open(directory: string, keep: OutputKeep = defaultKeep): Promise<OutputLog> {
    const index = await open(join(directory, 'index'), constants.O_RDWR | constants.O_CREAT, 0o600)
    const seen: Record<OutputStream, number> = { stdout: 0, stderr: 0 }
    const { size } = await index.stat()
    // A torn last record was never sent; the next one is written over it.
    const indexBytes = size - (size % recordBytes)
    for await (const record of readRecords(index, 0, indexBytes)) seen[record.stream] += record.length
    return new OutputLog(directory, index, indexBytes, seen, keep, await readGap(directory))
  }

  /** Bytes in the log so far. */
  get length(): number {
    return this.#seen.stdout + this.#seen.stderr
  }

  /**
   * Indexes what the files have grown by. True when there was something new. Calls must not overlap. On a full disk it
   * rejects and may be called again.
   */
  async observe(): Promise<boolean> {
    const grown = await Promise.all(streams.map((stream) => this.#growth(stream)))
    const records = grown.flat()
    if (records.length === 0) return false
    const bytes = Buffer.alloc(records.length * recordBytes)
    records.forEach((record, i) => {
      bytes.writeUInt8(record.stream === 'stdout' ? 1 : 2, i * recordBytes)
      bytes.writeUInt32BE(record.length, i * recordBytes + 4)
    })
    await writeExactly(this.#index, bytes, this.#indexBytes)
    for (const record of records) this.#seen[record.stream] += record.length
    this.#indexBytes += bytes.length
    if (this.#canDrop) await this.#dropMiddle()
    return true
  }

  async #dropMiddle(): Promise<void> {
    const from = this.#gap?.to ?? this.#keep.headBytes
    const to = this.length - this.#keep.tailBytes
    if (to - from < this.#keep.stepBytes) return
    try {
      const start = await this.#positionsAt(from)
      const end = await this.#positionsAt(to)
      const gap = { from: this.#keep.headBytes, to }
      await writeGap(this.#directory, gap)
      this.#gap = gap
      for (const stream of streams)
        await punchHole(join(this.#directory, stream), start[stream], end[stream] - start[stream])
    } catch {
      // Without holes, or without room to note one, the limit of the sandbox's disk is what holds the log.
      this.#canDrop = false
    }
  }

  /** Where the output at an offset lies in the two files. */
  async #positionsAt(offset: number): Promise<Record<OutputStream, number>> {
    const positions: Record<OutputStream, number> = { stdout: 0, stderr: 0 }
    let left = offset
    for await (const record of readRecords(this.#index, 0, this.#indexBytes)) {
      const taken = Math.min(left, record.length)
      positions[record.stream] += taken
      left -= taken
      if (left === 0) break
    }
    return positions
  }

  async #growth(stream: OutputStream): Promise<IndexRecord[]> {
    const size = await fileSize(join(this.#directory, stream))
    const records: IndexRecord[] = []
    for (let left = size - this.#seen[stream]; left > 0; left -= maxRecordLength) {
      records.push({ stream, length: Math.min(left, maxRecordLength) })
    }
    return records
  }

  /** A reader that starts at `offset` and sees everything indexed by the time it asks. */
  async cursor(offset: number): Promise<OutputCursor> {
    const files = await Promise.all(streams.map((stream) => open(join(this.#directory, stream), 'a+')))
    const state = { indexEnd: () => this.#indexBytes, gap: () => this.#gap }
    return new OutputCursor(this.#index, state, { stdout: files[0]!, stderr: files[1]! }, offset)
  }

  async close(): Promise<void> {
    await this.#index.close()
  }
}

export interface OutputChunk {
  readonly stream: OutputStream
  readonly offset: number
  readonly data: Uint8Array
}

/** One reader's place in a log. Holds one chunk at a time. */
export class OutputCursor {
  readonly #index: FileHandle
  readonly #log: LogState
  readonly #files: Record<OutputStream, FileHandle>
  #skip: number
  #offset = 0
  #indexPosition = 0
  #batch: IndexRecord[] = []
  #current: IndexRecord | undefined
  readonly #filePosition: Record<OutputStream, number> = { stdout: 0, stderr: 0 }

  constructor(index: FileHandle, log: LogState, files: Record<OutputStream, FileHandle>, startOffset: number) {
    this.#index = index
    this.#log = log
    this.#files = files
    this.#skip = startOffset
  }

  /** The next piece of output, behind the gap where it stands in one; undefined at the present end. */
  async next(): Promise<OutputChunk | undefined> {
    for (;;) {
      const record = await this.#record()
      if (!record) return undefined
      if (this.#skip > 0) {
        this.#advance(record, Math.min(this.#skip, record.length), true)
        continue
      }
      const length = Math.min(record.length, maxOutputPayloadBytes)
      const data = await readExactly(this.#files[record.stream], this.#filePosition[record.stream], length)
      const offset = this.#offset
      // Looked at after reading: what was dropped meanwhile reads as zeros.
      const gap = this.#log.gap()
      if (gap && offset < gap.to && offset + length > gap.from) {
        this.#skip = gap.to - offset
        continue
      }
      this.#advance(record, length, false)
      return { stream: record.stream, offset, data }
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#files.stdout.close(), this.#files.stderr.close()])
  }

  async #record(): Promise<IndexRecord | undefined> {
    if (this.#current && this.#current.length > 0) return this.#current
    if (this.#batch.length === 0) {
      const end = Math.min(this.#log.indexEnd(), this.#indexPosition + batchBytes)
      for await (const record of readRecords(this.#index, this.#indexPosition, end)) this.#batch.push(record)
      this.#indexPosition = end
    }
    this.#current = this.#batch.shift()
    return this.#current
  }

  #advance(record: IndexRecord, length: number, isSkipped: boolean): void {
    record.length -= length
    this.#filePosition[record.stream] += length
    this.#offset += length
    if (isSkipped) this.#skip -= length
  }
}

interface LogState {
  indexEnd(): number
  gap(): OutputGap | undefined
}

interface IndexRecord {
  stream: OutputStream
  length: number
}

const streams: readonly OutputStream[] = ['stdout', 'stderr']
const recordBytes = 8
const maxRecordLength = 0xffff_ffff
const batchBytes = 1024 * recordBytes

async function* readRecords(index: FileHandle, start: number, end: number): AsyncIterable<IndexRecord> {
  for (let position = start; position < end; position += batchBytes) {
    const bytes = await readExactly(index, position, Math.min(batchBytes, end - position))
    for (let i = 0; i < bytes.length; i += recordBytes) {
      yield { stream: bytes.readUInt8(i) === 2 ? 'stderr' : 'stdout', length: bytes.readUInt32BE(i + 4) }
    }
  }
}

async function writeExactly(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, position + written)
    written += bytesWritten
  }
}

/** What a process cut out of its own log reads as zeros, so that offsets keep their meaning. */
async function readExactly(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, position + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes
}

async function fileSize(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch {
    // Not there yet: nothing has been written.
    return 0
  }
}
