import type { EventLines } from './event-lines.js'

const maxBytes = 256 * 1024

/**
 * The last batches appended to a log, by the offset they begin at, for followers that have read everything before them:
 * they need not open the file again. Bounded by size; a reader further behind reads the file.
 */
export class RecentBatches {
  readonly #byOffset = new Map<number, EventLines>()
  #bytes = 0

  add(offset: number, batch: EventLines): void {
    this.#byOffset.set(offset, batch)
    this.#bytes += batch.nextOffset - offset
    for (const [start, { nextOffset }] of this.#byOffset) {
      if (this.#bytes <= maxBytes) return
      this.#byOffset.delete(start)
      this.#bytes -= nextOffset - start
    }
  }

  find(offset: number): EventLines | undefined {
    return this.#byOffset.get(offset)
  }

  clear(): void {
    this.#byOffset.clear()
    this.#bytes = 0
  }
}
