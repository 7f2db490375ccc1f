import type { WatchFrame, WatchFrames } from '@corral/ports'

const MAX_FRAMES = 5_000
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Frames on their way to one reader. A reader that falls 5,000 frames or 16 MiB behind is cut off: the iteration ends and
 * the client resumes from the last version it saw. Breaking out of the iteration calls `onEnd`, once.
 */
export class WatchQueue implements WatchFrames, AsyncIterator<WatchFrame> {
  private frames: { frame: WatchFrame; bytes: number }[] = []
  private first = 0
  private bytes = 0
  private isEnded = false
  private waiting: ((result: IteratorResult<WatchFrame>) => void) | undefined

  constructor(private readonly onEnd: () => void) {}

  get hasEnded(): boolean {
    return this.isEnded
  }

  /** Adds frames without the limit, for the state at the start of a watch, which the reader asked for as a whole. */
  prefill(frames: readonly WatchFrame[]): void {
    for (const frame of frames) this.frames.push({ frame, bytes: 0 })
  }

  push(frame: WatchFrame, bytes: number): void {
    if (this.isEnded) return
    if (this.waiting) {
      const resolve = this.waiting
      this.waiting = undefined
      resolve({ done: false, value: frame })
      return
    }
    this.frames.push({ frame, bytes })
    this.bytes += bytes
    if (this.bytes > MAX_BYTES || (bytes > 0 && this.frames.length - this.first > MAX_FRAMES)) {
      this.frames = []
      this.first = 0
      this.end()
    }
  }

  /** No more frames; those already queued are still delivered. */
  end(): void {
    if (this.isEnded) return
    this.isEnded = true
    this.onEnd()
    this.waiting?.({ done: true, value: undefined })
    this.waiting = undefined
  }

  takeReady(): WatchFrame | undefined {
    const entry = this.frames[this.first]
    if (!entry) return undefined
    this.frames[this.first++] = undefined as never
    this.bytes -= entry.bytes
    if (this.first === this.frames.length) {
      this.frames = []
      this.first = 0
    }
    return entry.frame
  }

  next(): Promise<IteratorResult<WatchFrame>> {
    const frame = this.takeReady()
    if (frame) return Promise.resolve({ done: false, value: frame })
    if (this.isEnded) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve) => {
      this.waiting = resolve
    })
  }

  return(): Promise<IteratorResult<WatchFrame>> {
    this.frames = []
    this.first = 0
    this.end()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
