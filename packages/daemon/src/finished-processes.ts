import type { MemoryProcess } from './memory-process.js'

/** Long enough for a reader whose connection was cut at the very end to come back. */
const keepMs = 5 * 60_000
const maxKept = 256
const maxKeptBytes = 16 * 1024 * 1024

/**
 * Commands held in memory that have ended: each is forgotten after five minutes, the oldest ones earlier when there are
 * many or their unread output is large.
 */
export class FinishedProcesses {
  readonly #forget: (id: string) => void
  readonly #kept = new Map<string, { process: MemoryProcess; timer: NodeJS.Timeout }>()

  constructor(forget: (id: string) => void) {
    this.#forget = forget
  }

  /** Forgets the process some time after its end. */
  watch(id: string, process: MemoryProcess): void {
    const look = () => {
      if (!process.record().exit) return void process.changed.wait(60_000).then(look)
      this.#kept.set(id, { process, timer: setTimeout(() => this.#drop(id), keepMs).unref() })
      this.#limit()
    }
    void process.changed.wait(60_000).then(look)
  }

  #limit(): void {
    let bytes = 0
    for (const { process } of this.#kept.values()) bytes += process.heldBytes
    for (const [id, { process }] of this.#kept) {
      if (this.#kept.size <= maxKept && (bytes <= maxKeptBytes || this.#kept.size === 1)) return
      bytes -= process.heldBytes
      this.#drop(id)
    }
  }

  #drop(id: string): void {
    clearTimeout(this.#kept.get(id)?.timer)
    this.#kept.delete(id)
    this.#forget(id)
  }
}
