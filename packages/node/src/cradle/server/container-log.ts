import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

export type OutputStream = 'stdout' | 'stderr'

const maxLineBytes = 16 * 1024
const newline = 10

export interface ContainerLogOptions {
  /** Above this size the file is renamed to `<path>.1`, replacing an older one, and begun anew. */
  rotateAtBytes?: number
  nowMs?: () => number
}

/**
 * A container's output on disk in the CRI format: time, stream, F for a whole line or P for a part of one, text.
 * Writing never throws: a full disk costs lines, not the container.
 */
export class ContainerLog {
  #fd: number | undefined
  #bytes = 0
  #ms = 0
  #msText = ''
  #nanos = 0
  #lostLines = 0
  readonly #partial: Record<OutputStream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }

  constructor(
    private readonly path: string,
    private readonly options: ContainerLogOptions = {},
  ) {}

  /** Makes the file, so that readers of a container that has not spoken yet find it empty rather than missing. */
  begin(): void {
    try {
      this.#open()
    } catch {
      // The first line tries again and is counted if that fails too.
    }
  }

  write(stream: OutputStream, chunk: Buffer): void {
    const now = this.#now()
    const pending = this.#partial[stream]
    const bytes = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    const lines = new LineBuffer(bytes.length)
    let start = 0
    for (let end = bytes.indexOf(newline); ; end = bytes.indexOf(newline, start)) {
      // Most output is many short lines, so this loop decides how much a container can say per second.
      while (bytes.length - start >= maxLineBytes && (end < 0 || end - start > maxLineBytes)) {
        lines.add(this.#prefix(stream, 'P', now), bytes, start, start + maxLineBytes)
        start += maxLineBytes
      }
      if (end < 0) break
      lines.add(this.#prefix(stream, 'F', now), bytes, start, end)
      start = end + 1
    }
    this.#partial[stream] = Buffer.from(bytes.subarray(start))
    this.#append(lines)
  }

  /** Writes what is left of unfinished lines and closes the file. */
  close(): void {
    const now = this.#now()
    for (const stream of ['stdout', 'stderr'] as const) {
      const rest = this.#partial[stream]
      this.#partial[stream] = Buffer.alloc(0)
      if (rest.length === 0) continue
      const lines = new LineBuffer(rest.length)
      lines.add(this.#prefix(stream, 'P', now), rest, 0, rest.length)
      this.#append(lines)
    }
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  get lostLines(): number {
    return this.#lostLines
  }

  #append(lines: LineBuffer): void {
    if (lines.count === 0) return
    try {
      const bytes = lines.bytes()
      this.#open()
      if (this.#bytes > 0 && this.#bytes + bytes.length > (this.options.rotateAtBytes ?? 10 * 1024 * 1024)) {
        this.#rotate()
      }
      for (let written = 0; written < bytes.length; ) {
        written += writeSync(this.#fd as number, bytes, written)
      }
      this.#bytes += bytes.length
    } catch {
      // No space or no directory any more. The container must not stall over its log.
      this.#lostLines += lines.count
    }
  }

  #open(): void {
    if (this.#fd !== undefined) return
    mkdirSync(dirname(this.path), { recursive: true })
    this.#fd = openSync(this.path, 'a', 0o640)
    this.#bytes = fstatSync(this.#fd).size
  }

  #rotate(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
    renameSync(this.path, `${this.path}.1`)
    this.#open()
  }

  #now(): number {
    return (this.options.nowMs ?? Date.now)()
  }

  /** Times strictly increase, so that readers can order lines and resume after one. */
  #prefix(stream: OutputStream, tag: 'F' | 'P', now: number): string {
    if (now > this.#ms || this.#nanos === 999_999) {
      this.#ms = Math.max(now, this.#ms + 1)
      this.#nanos = 0
      this.#msText = new Date(this.#ms).toISOString().slice(0, 23)
    } else this.#nanos++
    return `${this.#msText}${String(this.#nanos).padStart(6, '0')}Z ${stream} ${tag} `
  }
}

const prefixBytes = '2030-01-02T03:04:05.006000000Z stdout F '.length

/** Lines put together in one piece of memory, which grows as prefixes need it. */
class LineBuffer {
  count = 0
  #used = 0
  #data: Buffer

  constructor(textBytes: number) {
    this.#data = Buffer.allocUnsafe(textBytes * 2 + 4 * (prefixBytes + 1))
  }

  add(prefix: string, source: Buffer, start: number, end: number): void {
    const size = prefixBytes + (end - start) + 1
    if (this.#used + size > this.#data.length) {
      const grown = Buffer.allocUnsafe((this.#data.length + size) * 2)
      this.#data.copy(grown, 0, 0, this.#used)
      this.#data = grown
    }
    this.#used += this.#data.write(prefix, this.#used, 'latin1')
    this.#used += source.copy(this.#data, this.#used, start, end)
    this.#data[this.#used++] = newline
    this.count++
  }

  bytes(): Buffer {
    return this.#data.subarray(0, this.#used)
  }
}
