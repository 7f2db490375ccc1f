import type { KubeObject } from '@corral/resources'

export type StorageOperation = 'create' | 'update' | 'delete'

/** One committed change. `object` is the final state, also for a delete. */
export interface StorageWrite {
  readonly rv: number
  readonly collection: string
  readonly namespace: string
  readonly name: string
  readonly operation: StorageOperation
  /** Version this write replaced, 0 for a create. */
  readonly previousRv: number
  readonly object: KubeObject
}

export interface StorageRow {
  readonly collection: string
  readonly namespace: string
  readonly name: string
  readonly object: KubeObject
}

export interface StorageContents {
  /** Every live object, frozen. */
  readonly rows: readonly StorageRow[]
  /** The newest writes, oldest first, without those a later write of the same object replaced. */
  readonly history: readonly StorageWrite[]
  /** Every version handed out from now on is greater than this one. */
  readonly lastRv: number
}

/**
 * Where writes go to survive. Memory above it is the serving copy, so it is read once, at `open`. One process at a time:
 * a second opener of the same place is refused with a `StorageError` whose code is `StorageLocked`.
 */
export interface Storage {
  readonly durability: 'memory' | 'normal' | 'full'
  open(): Promise<StorageContents>
  /**
   * Stores the group, all or nothing, in order; throws when it cannot. The group is as durable as the mode promises once
   * the returned promise settles, or at once when there is none. The next group waits for it. A `StorageError` with the
   * code `DiskFull` promises that nothing of the group was kept and that a later group may be stored again.
   */
  commit(writes: readonly StorageWrite[]): Promise<void> | undefined
  close(): Promise<void>
}

export type StorageErrorCode = 'StorageLocked' | 'StorageClosed' | 'StorageCorrupt' | 'StorageTooNew' | 'DiskFull'

/** Storage that cannot be used; `code` says why, the message what to do. */
export class StorageError extends Error {
  override readonly name: string = 'StorageError'
  constructor(
    readonly code: StorageErrorCode,
    message: string,
    options: { cause?: unknown } = {},
  ) {
    super(message, options)
  }
}
