import { closeSync, fdatasync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeObject } from '@corral/resources'
import { jsonBytes } from '../store/json-bytes.js'
import { freezeJson } from '../store/plain-json.js'
import {
  type HistoryEntry,
  type Storage,
  type StorageContents,
  StorageError,
  type StorageOperation,
  type StorageRow,
  type StorageWrite,
} from './storage.js'
import { acquireLock, type StorageLock } from './storage-lock.js'

const SCHEMA_VERSION = 1
const RV_BLOCK = 10_000
/** Log rows that always stay; compaction starts at twice as many. */
const LOG_TAIL = 2_000
const COMPACT_BATCH = 1_000
const PAGE_ROWS = 500

export interface SqliteStorageOptions {
  /** Made when missing, 0700. Holds the database and the lock file. */
  directory: string
  /** `full` survives power loss, `normal` a crash of the process. */
  durability?: 'normal' | 'full'
}

/** The parts of `DatabaseSync` used here; `node:sqlite` and `@photostructure/sqlite` both have them. */
interface Statement {
  run(...values: unknown[]): unknown
  get(...values: unknown[]): unknown
  all(...values: unknown[]): unknown[]
}
interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

/** A journal in SQLite (WAL): table `cur` is the reload source, table `log` the recent history. */
export function sqliteStorage(options: SqliteStorageOptions): Storage {
  return new SqliteStorage(options)
}

class SqliteStorage implements Storage {
  readonly durability: 'normal' | 'full'
  private database: Database | undefined
  private lock: StorageLock | undefined
  private statements: Statements | undefined
  private reservedRv = 0
  private lastRv = 0
  private logRows = 0
  private walFd: number | undefined

  constructor(private readonly options: SqliteStorageOptions) {
    this.durability = options.durability ?? 'full'
  }

  private get path(): string {
    return join(this.options.directory, 'state.db')
  }

  async open(): Promise<StorageContents> {
    const { directory } = this.options
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    this.lock = acquireLock(join(directory, 'lock'))
    try {
      const DatabaseSync = await loadSqlite()
      const database = new DatabaseSync(this.path)
      this.database = database
      database.exec(`PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA auto_vacuum=INCREMENTAL;
        PRAGMA synchronous=NORMAL;
        PRAGMA cache_size=-8192; PRAGMA wal_autocheckpoint=4000;`)
      createTables(database)
      this.statements = prepareStatements(database)
      return this.load(this.statements)
    } catch (error) {
      await this.close()
      if (error instanceof StorageError) throw error
      throw new StorageError('StorageCorrupt', `cannot open the database in ${directory}`, { cause: error })
    }
  }

  private load(statements: Statements): StorageContents {
    const logged = (statements.logTail.all(LOG_TAIL) as LogRow[]).reverse()
    /** Objects whose newest write is in the log, which does not repeat them. */
    const living = new Map<number, KubeObject | undefined>(logged.map(({ rv }) => [rv, undefined]))
    const rows: StorageRow[] = []
    for (const row of pages(statements)) {
      const object = parseObject(row.v)
      if (living.has(row.rv)) living.set(row.rv, object)
      rows.push({ collection: row.gr, namespace: row.ns, name: row.name, object })
    }
    const history = logged.map((row): HistoryEntry => {
      const object = row.v ? parseObject(row.v) : living.get(row.rv)
      return {
        rv: row.rv,
        collection: row.gr,
        namespace: row.ns,
        name: row.name,
        operation: OPERATIONS[row.op]!,
        previousRv: row.prev_rv,
        ...(object ? { object } : {}),
      }
    })
    const newestLogged = history.at(-1)?.rv ?? 0
    const cleanRv = readNumber(statements, 'clean_rv')
    this.reservedRv = readNumber(statements, 'rv_reserved')
    // After an unclean stop versions beyond the last commit may have been seen by a client: skip the whole reservation.
    this.lastRv = cleanRv > 0 ? Math.max(cleanRv, newestLogged) : Math.max(this.reservedRv, newestLogged, 1)
    this.logRows = (statements.countLog.get() as { n: number }).n
    this.reserve(statements)
    statements.setMeta.run('clean_rv', '0')
    return { rows, history, lastRv: this.lastRv }
  }

  private reserve(statements: Statements): void {
    this.reservedRv = this.lastRv + RV_BLOCK
    statements.setMeta.run('rv_reserved', String(this.reservedRv))
  }

  commit(writes: readonly StorageWrite[]): Promise<void> | undefined {
    const { database, statements } = this
    if (!database || !statements) throw new StorageError('StorageClosed', 'the storage is closed')
    statements.begin.run()
    try {
      for (const write of writes) {
        const { rv, collection, namespace, name, operation, previousRv, object } = write
        const bytes = jsonBytes(object)
        if (operation === 'create') statements.insert.run(collection, namespace, name, rv, bytes)
        else if (operation === 'update') statements.replace.run(rv, bytes, collection, namespace, name)
        else statements.remove.run(collection, namespace, name)
        // The newest state of a living object is in `cur`; the log repeats only what would be gone.
        const last = operation === 'delete' ? bytes : null
        statements.append.run(rv, collection, namespace, name, OPERATIONS.indexOf(operation), previousRv, last)
        this.lastRv = rv
      }
      if (this.lastRv >= this.reservedRv - RV_BLOCK / 10) this.reserve(statements)
      statements.commit.run()
    } catch (error) {
      database.exec('ROLLBACK')
      throw error
    }
    this.logRows += writes.length
    if (this.logRows > 2 * LOG_TAIL) this.compact(database, statements)
    return this.durability === 'full' ? this.flushWal() : undefined
  }

  /**
   * Brings the write-ahead log to the disk, as `synchronous=FULL` would after each commit, but without holding up the
   * event loop. SQLite itself syncs the log before it moves pages into the database, so their order is never in doubt.
   */
  private flushWal(): Promise<void> {
    this.walFd ??= openSync(`${this.path}-wal`, 'r')
    const fd = this.walFd
    return new Promise((resolve, reject) => {
      fdatasync(fd, (error) => (error ? reject(error) : resolve()))
    })
  }

  /** Drops the oldest log rows in one small transaction; the compaction version moves in the same one. */
  private compact(database: Database, statements: Statements): void {
    database.exec('BEGIN IMMEDIATE')
    const floor = (
      statements.nthOldest.get(Math.min(COMPACT_BATCH, this.logRows - LOG_TAIL)) as { rv: number } | undefined
    )?.rv
    if (floor !== undefined) {
      statements.trimLog.run(floor)
      statements.setMeta.run('compact_rv', String(floor))
    }
    database.exec('COMMIT')
    this.logRows = (statements.countLog.get() as { n: number }).n
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
    try {
      this.database?.close()
    } finally {
      this.database = undefined
      this.statements = undefined
      this.lock?.release()
      this.lock = undefined
    }
  }
}

type Statements = Record<
  | 'page'
  | 'logTail'
  | 'countLog'
  | 'nthOldest'
  | 'trimLog'
  | 'getMeta'
  | 'setMeta'
  | 'insert'
  | 'replace'
  | 'remove'
  | 'append'
  | 'begin'
  | 'commit',
  Statement
>

const OPERATIONS: readonly StorageOperation[] = ['create', 'update', 'delete']

interface CurRow {
  id: number
  gr: string
  ns: string
  name: string
  rv: number
  v: string
}
interface LogRow extends Omit<CurRow, 'id' | 'v'> {
  op: number
  prev_rv: number
  v: string | null
}

function createTables(database: Database): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS meta (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS cur (id INTEGER PRIMARY KEY, gr TEXT, ns TEXT, name TEXT, rv INTEGER, v BLOB);
    CREATE UNIQUE INDEX IF NOT EXISTS cur_key ON cur (gr, ns, name);
    CREATE TABLE IF NOT EXISTS log (rv INTEGER PRIMARY KEY, gr TEXT, ns TEXT, name TEXT, op INTEGER, prev_rv INTEGER,
      v BLOB);`)
  const found = database.prepare('SELECT v FROM meta WHERE k = ?').get('schema') as { v: string } | undefined
  if (found && Number(found.v) > SCHEMA_VERSION) {
    throw new StorageError('StorageTooNew', `the database has schema ${found.v}; this version knows ${SCHEMA_VERSION}`)
  }
  if (!found) database.prepare('INSERT INTO meta VALUES (?, ?)').run('schema', String(SCHEMA_VERSION))
}

function prepareStatements(database: Database): Statements {
  return {
    page: database.prepare(
      'SELECT id, gr, ns, name, rv, CAST(v AS TEXT) AS v FROM cur WHERE id > ? ORDER BY id LIMIT ?',
    ),
    logTail: database.prepare(
      'SELECT rv, gr, ns, name, op, prev_rv, CAST(v AS TEXT) AS v FROM log ORDER BY rv DESC LIMIT ?',
    ),
    countLog: database.prepare('SELECT count(*) AS n FROM log'),
    nthOldest: database.prepare('SELECT rv FROM log ORDER BY rv LIMIT 1 OFFSET ?'),
    trimLog: database.prepare('DELETE FROM log WHERE rv < ?'),
    getMeta: database.prepare('SELECT v FROM meta WHERE k = ?'),
    setMeta: database.prepare('INSERT INTO meta VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v'),
    insert: database.prepare('INSERT INTO cur (gr, ns, name, rv, v) VALUES (?, ?, ?, ?, ?)'),
    replace: database.prepare('UPDATE cur SET rv = ?, v = ? WHERE gr = ? AND ns = ? AND name = ?'),
    remove: database.prepare('DELETE FROM cur WHERE gr = ? AND ns = ? AND name = ?'),
    begin: database.prepare('BEGIN IMMEDIATE'),
    commit: database.prepare('COMMIT'),
    append: database.prepare('INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)'),
  }
}

function readNumber(statements: Statements, key: string): number {
  return Number((statements.getMeta.get(key) as { v: string } | undefined)?.v ?? 0)
}

/** Every row, some at a time: rows that live no longer than their page cost the collector next to nothing. */
function* pages(statements: Statements): Generator<CurRow> {
  for (let id = 0; ; ) {
    const page = statements.page.all(id, PAGE_ROWS) as CurRow[]
    yield* page
    const last = page.at(-1)
    if (!last || page.length < PAGE_ROWS) return
    id = last.id
  }
}

const parseObject = (json: string): KubeObject => freezeJson(JSON.parse(json) as KubeObject)

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
