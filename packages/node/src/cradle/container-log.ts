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
  #lastNanos = 0n
  #lostLines = 0
  readonly #partial: Record<OutputStream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }

  constructor(
    private readonly path: string,
    private readonly options: ContainerLogOptions = {},
  ) {}

  write(stream: OutputStream, chunk: Buffer): void {
    const pending = this.#partial[stream]
    let rest = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    const lines: Buffer[] = []
    for (let end = rest.indexOf(newline); end >= 0 || rest.length >= maxLineBytes; end = rest.indexOf(newline)) {
      const isWhole = end >= 0 && end <= maxLineBytes
      const size = isWhole ? end : maxLineBytes
      lines.push(this.#line(stream, isWhole ? 'F' : 'P', rest.subarray(0, size)))
      rest = rest.subarray(isWhole ? size + 1 : size)
    }
    this.#partial[stream] = Buffer.from(rest)
    this.#append(lines)
  }

  /** Writes what is left of unfinished lines and closes the file. */
  close(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      const rest = this.#partial[stream]
      this.#partial[stream] = Buffer.alloc(0)
      if (rest.length > 0) this.#append([this.#line(stream, 'P', rest)])
    }
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  get lostLines(): number {
    return this.#lostLines
  }

  #line(stream: OutputStream, tag: 'F' | 'P', text: Buffer): Buffer {
    return Buffer.concat([Buffer.from(`${this.#timestamp()} ${stream} ${tag} `), text, Buffer.from('\n')])
  }

  #append(lines: readonly Buffer[]): void {
    if (lines.length === 0) return
    try {
      const bytes = lines.length === 1 ? (lines[0] as Buffer) : Buffer.concat(lines)
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
      this.#lostLines += lines.length
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

  /** Strictly increasing, so that readers can order lines and resume after one. */
  #timestamp(): string {
    const now = BigInt((this.options.nowMs ?? Date.now)()) * 1_000_000n
    this.#lastNanos = now > this.#lastNanos ? now : this.#lastNanos + 1n
    const nanos = String(this.#lastNanos % 1_000_000_000n).padStart(9, '0')
    return `${new Date(Number(this.#lastNanos / 1_000_000n)).toISOString().slice(0, 19)}.${nanos}Z`
  }
}
