import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeObject } from '@corral/resources'
import { jsonText } from '../objects/json-text.js'
import { freezeJson } from '../objects/plain-json.js'
import type { Journal, JournalEntry } from './journal.js'
import { SqliteJournal } from './sqlite-journal.js'
import type { Storage, StorageContents, StorageWrite } from './storage.js'
import { acquireLock, type StorageLock } from './storage-lock.js'
import { ThreadJournal } from './thread-journal.js'

/** Writes that are replayed at a start. */
const HISTORY_TAIL = 2_000

export interface SqliteStorageOptions {
  /** Made when missing, 0700. Holds the database and the lock file. */
  directory: string
  /** `full` survives power loss, `normal` a crash of the process. */
  durability?: 'normal' | 'full'
  /** The program for a thread of its own, see `ThreadJournal`. Without it the journal shares the caller's thread. */
  threadProgram?: string
}

/** Storage in a SQLite database. */
export function sqliteStorage(options: SqliteStorageOptions): Storage {
  return new SqliteStorage(options)
}

class SqliteStorage implements Storage {
  readonly durability: 'normal' | 'full'
  private readonly directory: string
  private readonly journal: Journal
  private lock: StorageLock | undefined

  constructor({ directory, durability = 'full', threadProgram }: SqliteStorageOptions) {
    this.durability = durability
    this.directory = directory
    this.journal = threadProgram
      ? new ThreadJournal(threadProgram, { directory, durability })
      : new SqliteJournal(directory, durability)
  }

  async open(): Promise<StorageContents> {
    mkdirSync(this.directory, { recursive: true, mode: 0o700 })
    this.lock = acquireLock(join(this.directory, 'lock'))
    const rows: StorageWrite[] = []
    const gone: StorageWrite[] = []
    try {
      const { compactedRv, lastRv } = await this.journal.open((entries) => {
        for (const entry of entries) (entry.operation === 'delete' ? gone : rows).push(writeOf(entry))
      })
      return { rows, history: newest([...rows, ...gone], compactedRv), lastRv }
    } catch (error) {
      await this.close()
      throw error
    }
  }

  commit(writes: readonly StorageWrite[]): Promise<void> | undefined {
    return this.journal.commit(writes.map(entryOf))
  }

  async close(): Promise<void> {
    try {
      await this.journal.close()
    } finally {
      this.lock?.release()
      this.lock = undefined
    }
  }
}

function entryOf(write: StorageWrite): JournalEntry {
  const { rv, collection, namespace, name, operation, previousRv, object } = write
  return { rv, collection, namespace, name, operation, previousRv, json: jsonText(object) }
}

function writeOf(entry: JournalEntry): StorageWrite {
  const { rv, collection, namespace, name, operation, previousRv, json } = entry
  const object = freezeJson(JSON.parse(json) as KubeObject)
  return { rv, collection, namespace, name, operation, previousRv, object }
}

/** The newest writes, oldest first: as many as are worth replaying, and none from before the last compaction. */
function newest(writes: readonly StorageWrite[], compactedRv: number): StorageWrite[] {
  const versions = Float64Array.from(writes, ({ rv }) => rv).sort()
  const floorRv = Math.max(compactedRv, versions[versions.length - HISTORY_TAIL - 1] ?? 0)
  return writes.filter(({ rv }) => rv > floorRv).sort((a, b) => a.rv - b.rv)
}
