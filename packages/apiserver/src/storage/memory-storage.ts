import { type Storage, type StorageContents, StorageError, type StorageWrite } from './storage.js'

/** Keeps nothing: objects live as long as the server. Versions start at the time in µs, so no earlier run's reappear. */
export function memoryStorage(options: { firstRv?: number } = {}): Storage {
  let state: 'new' | 'open' | 'closed' = 'new'
  return {
    durability: 'memory',
    async open(): Promise<StorageContents> {
      if (state !== 'new') throw new StorageError('StorageLocked', 'this memory storage is in use by a server already')
      state = 'open'
      return {
        rows: [],
        history: [],
        lastRv: options.firstRv ?? Math.floor((performance.timeOrigin + performance.now()) * 1000),
      }
    },
    commit(_writes: readonly StorageWrite[]): undefined {
      if (state !== 'open') throw new StorageError('StorageClosed', 'the storage is closed')
      return undefined
    },
    async close(): Promise<void> {
      state = 'closed'
    },
  }
}
