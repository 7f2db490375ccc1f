import { type FSWatcher, watch } from 'node:fs'

const settleMs = 5
const pollMs = 1_000

/**
 * Calls `onChange` soon after anything in a directory changes, never twice at once, and again when something changed
 * meanwhile. Also once a second: file events are a hint that some file systems do not give.
 */
export class DirectoryWatch {
  readonly #onChange: () => Promise<void>
  #watcher: FSWatcher | undefined
  #poll: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #isDirty = false
  #isClosed = false

  constructor(directory: string, onChange: () => Promise<void>) {
    this.#onChange = onChange
    try {
      this.#watcher = watch(directory, { persistent: false }, () => this.trigger())
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      // No more file watches to be had: the poll below carries on alone.
    }
    this.#poll = setInterval(() => this.trigger(), pollMs).unref()
  }

  /** Asks for a look now. */
  trigger(): void {
    this.#isDirty = true
    if (!this.#running && !this.#isClosed) this.#running = this.#run()
  }

  /** Starts no further look. Safe to call from inside one. */
  stop(): void {
    this.#isClosed = true
    this.#watcher?.close()
    clearInterval(this.#poll)
  }

  /** Resolves when no look is in progress. */
  async idle(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    while (this.#isDirty && !this.#isClosed) {
      this.#isDirty = false
      await this.#onChange()
      // A stream of small writes is looked at in batches.
      await new Promise((resolve) => setTimeout(resolve, settleMs).unref())
    }
    this.#running = undefined
    if (this.#isDirty) this.trigger()
  }
}
