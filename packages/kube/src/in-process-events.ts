import type { WatchFrame } from '@corral/ports'
import type { WatchEvent } from '@corral/resources'

const end: IteratorResult<WatchEvent> = { done: true, value: undefined }

/**
 * The events of a watch in the same process, for one reader. Ends as soon as `signal` aborts, even while the server has
 * nothing to say. Leaving the iteration unregisters the watch. Written out because every event of every informer passes
 * here, and a generator would make it wait twice more.
 */
export class InProcessEvents implements AsyncIterableIterator<WatchEvent> {
  readonly #frames: AsyncIterator<WatchFrame>
  readonly #signal: AbortSignal | undefined
  readonly #stop = (): void => this.#end()
  #settle: ((result: IteratorResult<WatchEvent>) => void) | undefined
  #hasEnded = false

  constructor(frames: AsyncIterable<WatchFrame>, signal: AbortSignal | undefined) {
    this.#frames = frames[Symbol.asyncIterator]()
    this.#signal = signal
    signal?.addEventListener('abort', this.#stop, { once: true })
    if (signal?.aborted) this.#end()
  }

  next(): Promise<IteratorResult<WatchEvent>> {
    if (this.#hasEnded) return Promise.resolve(end)
    return new Promise((resolve, reject) => {
      this.#settle = resolve
      this.#frames.next().then(
        (result) => {
          if (result.done) this.#end()
          else resolve({ done: false, value: result.value.event })
        },
        (error: unknown) => {
          reject(error)
          this.#end()
        },
      )
    })
  }

  return(): Promise<IteratorResult<WatchEvent>> {
    this.#end()
    return Promise.resolve(end)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#signal?.removeEventListener('abort', this.#stop)
    this.#settle?.(end)
    // Not awaited: a source that waits for its next value would hold us up. No caller is left to receive its failure.
    void this.#frames.return?.()?.catch(() => {})
  }
}
