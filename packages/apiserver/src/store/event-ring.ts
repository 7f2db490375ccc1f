import type { WatchFrame } from '@corral/ports'
import type { KubeObject } from '@corral/resources'

/** One committed change of one object. For a removal `object` is the last state with the version of the removal. */
export interface StoreEvent {
  readonly rv: number
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly namespace: string
  readonly name: string
  readonly object: KubeObject
  readonly previous: KubeObject | undefined
  readonly committedAtMs: number
  /** Taken once: an object's JSON may be made later, and what is added must be what is taken away. */
  readonly sizeBytes: number
  /** Frames made of this event so far: each is made once for all watchers. Most events have none or one. */
  frames: readonly EventFrame[]
}

/** A frame with what tells it from others of the same event: how the object is shown, and as what kind of change. */
export interface EventFrame {
  readonly representation: string
  readonly change: string
  readonly frame: WatchFrame
}

const MIN_EVENTS = 10_000
const MIN_AGE_MS = 5 * 60_000
const MAX_BYTES = 64 * 1024 * 1024
/** Watchers that keep up have read an event before this many others follow; for slower ones it is encoded again. */
const FRAMES_KEPT = 256
const noFrames: readonly EventFrame[] = []

/** The newest events of one collection: at least 10,000 or five minutes of them, as long as they fit in 64 MiB. */
export class EventRing {
  private events: StoreEvent[] = []
  private start = 0
  private bytes = 0

  /** Events at or below `floorRv` are not known. */
  constructor(private floor: number) {}

  get floorRv(): number {
    return this.floor
  }

  push(event: StoreEvent): void {
    this.events.push(event)
    const read = this.events[this.events.length - FRAMES_KEPT]
    if (read) read.frames = noFrames
    this.bytes += event.sizeBytes
    while (this.isOverfull(event.committedAtMs)) {
      const oldest = this.events[this.start]!
      this.events[this.start++] = undefined as never
      this.bytes -= oldest.sizeBytes
      this.floor = oldest.rv
    }
    if (this.start > 1024 && this.start * 2 > this.events.length) {
      this.events = this.events.slice(this.start)
      this.start = 0
    }
  }

  private isOverfull(nowMs: number): boolean {
    const count = this.events.length - this.start
    if (count <= 1) return false
    if (this.bytes > MAX_BYTES) return true
    return count > MIN_EVENTS && nowMs - this.events[this.start]!.committedAtMs > MIN_AGE_MS
  }

  /** Events after `rv`, oldest first; undefined when some of them are no longer known. */
  after(rv: number): readonly StoreEvent[] | undefined {
    if (rv < this.floor) return undefined
    let low = this.start
    let high = this.events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.events[middle]!.rv <= rv) low = middle + 1
      else high = middle
    }
    return this.events.slice(low)
  }
}
