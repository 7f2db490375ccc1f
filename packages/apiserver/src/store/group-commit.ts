import { errorCode } from '@corral/resources'
import type { Storage, StorageWrite } from '../storage/storage.js'

interface Group {
  readonly writes: StorageWrite[]
  readonly done: Promise<void>
  resolve(): void
  reject(error: unknown): void
}

/**
 * Brings writes to storage in groups: those of one turn together, and those that come while a group is on its way in the
 * next. Each is published when its group is durable.
 */
export class GroupCommit {
  private open: Group | undefined
  private inFlight: Group | undefined
  private isScheduled = false
  private failure: unknown
  private isFull = false

  constructor(
    private readonly storage: Pick<Storage, 'commit' | 'durability'>,
    private readonly publish: (write: StorageWrite) => void,
    /** Hears of each write that was not stored, the newest first, before its writer does. */
    private readonly discard: (write: StorageWrite) => void,
  ) {}

  /** Whether the last group found no room. Writes are tried all the same: that is how the end of it is noticed. */
  get isDiskFull(): boolean {
    return this.isFull
  }

  /** Throws once it is unknown what of a group was stored: what comes after it would build on that. */
  check(): void {
    if (this.failure) throw this.failure
  }

  /** Settles once the write is durable and published. */
  add(write: StorageWrite): Promise<void> {
    this.open ??= newGroup()
    this.open.writes.push(write)
    if (!this.inFlight && !this.isScheduled) this.schedule()
    return this.open.done
  }

  /** Settles once every write so far is durable and published. */
  settled(): Promise<void> {
    return (this.open ?? this.inFlight)?.done ?? Promise.resolve()
  }

  private schedule(): void {
    this.isScheduled = true
    const send = (): void => {
      this.isScheduled = false
      this.send()
    }
    if (this.storage.durability === 'memory') queueMicrotask(send)
    else setImmediate(send)
  }

  private send(): void {
    const group = this.open
    if (!group) return
    this.open = undefined
    try {
      const durable = this.storage.commit(group.writes)
      if (durable) this.follow(group, durable)
      else this.settle(group)
    } catch (error) {
      this.lose(group, error)
    }
  }

  private follow(group: Group, durable: Promise<void>): void {
    this.inFlight = group
    durable
      .then(() => this.settle(group))
      .catch((error: unknown) => this.lose(group, error))
      .finally(() => {
        this.inFlight = undefined
        this.send()
      })
  }

  private settle(group: Group): void {
    this.isFull = false
    for (const write of group.writes) this.publish(write)
    group.resolve()
  }

  /**
   * Writes that wait build on those that are lost, so they are lost too, even where the disk would take them again. After
   * a full disk the storage is as it was before the group: with all of them discarded, later writes build on that.
   */
  private lose(group: Group, error: unknown): void {
    this.isFull = errorCode(error) === 'DiskFull'
    if (!this.isFull) this.failure = error
    const waiting = this.open
    this.open = undefined
    for (const write of [...group.writes, ...(waiting?.writes ?? [])].reverse()) this.discard(write)
    group.reject(error)
    waiting?.reject(error)
  }
}

function newGroup(): Group {
  let resolve = (): void => {}
  let reject = (_error: unknown): void => {}
  const done = new Promise<void>((onDone, onError) => {
    resolve = onDone
    reject = onError
  })
  // Each writer awaits `done` itself; a group whose writers all left must not become an unhandled rejection.
  done.catch(() => {})
  return { writes: [], done, resolve, reject }
}
