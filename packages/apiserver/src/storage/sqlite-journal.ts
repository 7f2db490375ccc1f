import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { Journal, JournalEntry, JournalState } from './journal.js'
import {
  createTables,
  type Database,
  type JournalRow,
  prepareStatements,
  returnFreePages,
  type Statements,
} from './sqlite-schema.js'
import { StorageError, type StorageOperation } from './storage.js'

const RV_BLOCK = 10_000
/** Deletions that always stay; compaction starts at twice as many. */
const DELETIONS_KEPT = 2_000
const COMPACT_BATCH = 1_000
const PAGE_ROWS = 500

/**
 * A journal in SQLite (WAL). Table `cur` has the newest state of every living object, table `gone` the last state of those
 * deleted lately. Who reads it back learns the history from both: a write that neither names was replaced by one that is
 * there. Rows are found by a number this process keeps, so that a create only appends and no index is kept in order.
 */
export class SqliteJournal implements Journal {
  private database: Database | undefined
  private statements: Statements | undefined
  private readonly ids = new Map<string, number>()
  private nextId = 1
  private reservedRv = 0
  private lastRv = 0
  private goneRows = 0
  private walFd: number | undefined

  constructor(
    private readonly directory: string,
    private readonly durability: 'normal' | 'full',
  ) {}

  private get path(): string {
    return join(this.directory, 'state.db')
  }

  async open(onEntries: (entries: readonly JournalEntry[]) => void): Promise<JournalState> {
    try {
      const DatabaseSync = await loadSqlite()
      const database = new DatabaseSync(this.path)
      this.database = database
      database.exec(`PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
        PRAGMA cache_size=-8192; PRAGMA wal_autocheckpoint=4000;`)
      createTables(database)
      returnFreePages(database)
      this.statements = prepareStatements(database)
      return this.load(this.statements, onEntries)
    } catch (error) {
      await this.close()
      if (error instanceof StorageError) throw error
      if (isDiskFull(error)) throw diskFull(this.directory, error)
      throw new StorageError('StorageCorrupt', `cannot open the database in ${this.directory}`, { cause: error })
    }
  }

  private load(statements: Statements, onEntries: (entries: readonly JournalEntry[]) => void): JournalState {
    for (let rows = this.page(statements); rows.length > 0; rows = this.page(statements)) {
      for (const row of rows) {
        this.ids.set(keyOf(row.gr, row.ns, row.name), row.id)
        this.lastRv = Math.max(this.lastRv, row.rv)
      }
      onEntries(rows.map((row) => entryOf(row, row.prev_rv === 0 ? 'create' : 'update')))
    }
    const gone = statements.gone.all() as JournalRow[]
    this.goneRows = gone.length
    this.lastRv = Math.max(this.lastRv, gone.at(-1)?.rv ?? 0)
    onEntries(gone.map((row) => entryOf(row, 'delete')))
    const cleanRv = readNumber(statements, 'clean_rv')
    this.reservedRv = readNumber(statements, 'rv_reserved')
    // After an unclean stop versions beyond the last commit may have been seen by a client: skip the whole reservation.
    this.lastRv = Math.max(cleanRv > 0 ? cleanRv : this.reservedRv, this.lastRv, 1)
    this.reserve(statements)
    statements.setMeta.run('clean_rv', '0')
    return { compactedRv: readNumber(statements, 'compact_rv'), lastRv: this.lastRv }
  }

  /** The next rows that live; rows that live no longer than their page cost the housekeeper next to nothing. */
  private page(statements: Statements): (JournalRow & { id: number })[] {
    const rows = statements.page.all(this.nextId - 1, PAGE_ROWS) as (JournalRow & { id: number })[]
    this.nextId = (rows.at(-1)?.id ?? this.nextId - 1) + 1
    return rows
  }

  private reserve(statements: Statements): void {
    this.reservedRv = this.lastRv + RV_BLOCK
    statements.setMeta.run('rv_reserved', String(this.reservedRv))
  }

  commit(entries: readonly JournalEntry[]): Promise<void> | undefined {
    this.write(entries)
    return this.durability === 'full' ? this.flushWal() : undefined
  }

  /** The same for a thread that has nothing else to do meanwhile. */
  commitSync(entries: readonly JournalEntry[]): void {
    this.write(entries)
    if (this.durability === 'full') fdatasyncSync(this.wal())
  }

  private write(entries: readonly JournalEntry[]): void {
    const { database, statements } = this
    if (!database || !statements) throw new StorageError('StorageClosed', 'the storage is closed')
    const { nextId, reservedRv, lastRv, goneRows } = this
    const replaced: [key: string, id: number | undefined][] = []
    try {
      statements.begin.run()
      for (const entry of entries) replaced.push(this.record(statements, entry))
      if (this.lastRv >= this.reservedRv - RV_BLOCK / 10) this.reserve(statements)
      statements.commit.run()
    } catch (error) {
      rollBack(database)
      Object.assign(this, { nextId, reservedRv, lastRv, goneRows })
      for (const [key, id] of replaced.reverse()) {
        if (id === undefined) this.ids.delete(key)
        else this.ids.set(key, id)
      }
      throw isDiskFull(error) ? diskFull(this.directory, error) : error
    }
    if (this.goneRows > 2 * DELETIONS_KEPT) this.compact(database, statements)
  }

  /** Answers the row the object had before, for the case that the group cannot be kept. */
  private record(statements: Statements, entry: JournalEntry): [key: string, id: number | undefined] {
    const { rv, collection, namespace, name, previousRv, json } = entry
    const key = keyOf(collection, namespace, name)
    const id = this.ids.get(key)
    if (entry.operation === 'delete') {
      if (id !== undefined) statements.remove.run(id)
      this.ids.delete(key)
      statements.bury.run(rv, collection, namespace, name, previousRv, json)
      this.goneRows += 1
    } else if (id === undefined) {
      statements.insert.run(this.nextId, collection, namespace, name, rv, previousRv, json)
      this.ids.set(key, this.nextId++)
    } else {
      statements.replace.run(rv, previousRv, json, id)
    }
    this.lastRv = rv
    return [key, id]
  }

  /**
   * Brings the write-ahead log to the disk, as `synchronous=FULL` would after each commit, but without holding up the
   * event loop. SQLite itself syncs the log before it moves pages into the database, so their order is never in doubt.
   */
  private flushWal(): Promise<void> {
    const fd = this.wal()
    return new Promise((resolve, reject) => {
      fdatasync(fd, (error) => (error ? reject(error) : resolve()))
    })
  }

  private wal(): number {
    this.walFd ??= openSync(`${this.path}-wal`, 'r')
    return this.walFd
  }

  /** Forgets the oldest deletions in one small transaction; the compaction version moves in the same one. */
  private compact(database: Database, statements: Statements): void {
    try {
      statements.begin.run()
      const { rv } = statements.nthOldest.get(Math.min(COMPACT_BATCH, this.goneRows - DELETIONS_KEPT)) as { rv: number }
      statements.forget.run(rv)
      statements.setMeta.run('compact_rv', String(rv))
      statements.commit.run()
    } catch (error) {
      rollBack(database)
      // The group before it is kept and must not be reported as lost; a later one compacts.
      if (!isDiskFull(error)) throw error
    }
    this.goneRows = (statements.countGone.get() as { n: number }).n
  }

  async close(): Promise<void> {
    if (this.walFd !== undefined) closeSync(this.walFd)
    this.walFd = undefined
    try {
      this.statements?.setMeta.run('clean_rv', String(this.lastRv))
      // Prepared statements can keep the connection alive past `close`; without this its lock would live on with it.
      this.database?.exec('PRAGMA journal_mode=DELETE; PRAGMA locking_mode=NORMAL; SELECT count(*) FROM meta')
    } catch {
      // The next start treats a missing clean mark as a crash, which is always safe.
    }
    const { database } = this
    this.database = undefined
    this.statements = undefined
    database?.close()
  }
}

/** SQLite has often rolled back by itself after a full disk, and then refuses to do it again. */
function rollBack(database: Database): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // No transaction is open, which is all that is wanted here.
  }
}

/** SQLITE_FULL, as both drivers number it. */
const isDiskFull = (error: unknown): boolean => (error as { errcode?: unknown } | undefined)?.errcode === 13

function diskFull(directory: string, cause: unknown): StorageError {
  const message = `the disk of ${directory} is full; free space there, or delete sandboxes that use much of it`
  return new StorageError('DiskFull', message, { cause })
}

const keyOf = (collection: string, namespace: string, name: string): string => `${collection}/${namespace}/${name}`

function entryOf(row: JournalRow, operation: StorageOperation): JournalEntry {
  const { rv, gr: collection, ns: namespace, name, prev_rv: previousRv, v: json } = row
  return { rv, collection, namespace, name, operation, previousRv, json }
}

function readNumber(statements: Statements, key: string): number {
  return Number((statements.getMeta.get(key) as { v: string } | undefined)?.v ?? 0)
}

async function loadSqlite(): Promise<new (path: string) => Database> {
  const builtIn = process.getBuiltinModule?.('node:sqlite') as
    | { DatabaseSync: new (path: string) => Database }
    | undefined
  if (builtIn) return builtIn.DatabaseSync
  const module = await import('@photostructure/sqlite')
  return module.DatabaseSync as unknown as new (
    path: string,
  ) => Database
}
