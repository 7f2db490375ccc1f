import { CorralError, maxOutputPayloadBytes, type OutputStream } from '@corral/protocol'
import type { OutputChunk, OutputCursor } from './output-log.js'

/** How far a process may be ahead of what its reader has confirmed. */
const windowBytes = 2 * 1024 * 1024

/**
 * Output in memory, from the first byte that was not confirmed to the last one written. `onFull` is told when a window's
 * worth is held and when there is room again.
 */
export class HeldOutput {
  readonly #onFull: (isFull: boolean) => void
  #chunks: OutputChunk[] = []
  #start = 0
  #end = 0
  #isFull = false

  constructor(onFull: (isFull: boolean) => void) {
    this.#onFull = onFull
  }

  /** Bytes ever written. */
  get length(): number {
    return this.#end
  }

  get heldBytes(): number {
    return this.#end - this.#start
  }

  get isFull(): boolean {
    return this.#isFull
  }

  push(stream: OutputStream, data: Uint8Array): void {
    for (let at = 0; at < data.length; at += maxOutputPayloadBytes) {
      const part = data.subarray(at, at + maxOutputPayloadBytes)
      this.#chunks.push({ stream, offset: this.#end, data: part })
      this.#end += part.length
    }
    this.#tell()
  }

  /** Lets go of everything before `offset`. */
  confirm(offset: number): void {
    let count = 0
    for (const chunk of this.#chunks) {
      if (chunk.offset + chunk.data.length > offset) break
      count += 1
    }
    this.#chunks = this.#chunks.slice(count)
    this.#start = this.#chunks[0]?.offset ?? this.#end
    this.#tell()
  }

  /** A reader from `offset` on; `Expired` where that was confirmed and let go. */
  cursor(offset: number): Pick<OutputCursor, 'next' | 'close'> {
    if (offset < this.#start) {
      throw new CorralError('Expired', `output before ${this.#start} was confirmed and is no longer held`)
    }
    let position = offset
    return {
      next: async () => {
        const index = this.#indexOf(position)
        const chunk = this.#chunks[index]
        if (!chunk) return undefined
        const data = chunk.data.subarray(position - chunk.offset)
        const found = { stream: chunk.stream, offset: position, data }
        position += data.length
        return found
      },
      close: async () => {},
    }
  }

  #indexOf(position: number): number {
    let low = 0
    let high = this.#chunks.length
    while (low < high) {
      const middle = (low + high) >> 1
      const chunk = this.#chunks[middle]!
      if (chunk.offset + chunk.data.length <= position) low = middle + 1
      else high = middle
    }
    return low
  }

  #tell(): void {
    const isFull = this.heldBytes >= windowBytes
    if (isFull === this.#isFull) return
    this.#isFull = isFull
    this.#onFull(isFull)
  }
}
