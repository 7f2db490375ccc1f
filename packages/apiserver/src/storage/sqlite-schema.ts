import { StorageError } from './storage.js'

const SCHEMA_VERSION = 2

/** The parts of `DatabaseSync` used here; `node:sqlite` and `@photostructure/sqlite` both have them. */
interface Statement {
  run(...values: unknown[]): unknown
  get(...values: unknown[]): unknown
  all(...values: unknown[]): unknown[]
}
/** One connection. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

/** Every statement the journal runs, prepared once. */
export type Statements = Record<
  | 'page'
  | 'gone'
  | 'countGone'
  | 'nthOldest'
  | 'forget'
  | 'getMeta'
  | 'setMeta'
  | 'insert'
  | 'replace'
  | 'remove'
  | 'bury'
  | 'begin'
  | 'commit',
  Statement
>

/** A row of either table. */
export interface JournalRow {
  gr: string
  ns: string
  name: string
  rv: number
  prev_rv: number
  v: string
}

/** Makes the tables, or brings those of an earlier version to this one. */
export function createTables(database: Database): void {
  database.exec('CREATE TABLE IF NOT EXISTS meta (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID')
  const found = database.prepare('SELECT v FROM meta WHERE k = ?').get('schema') as { v: string } | undefined
  const version = found ? Number(found.v) : undefined
  if (version === SCHEMA_VERSION) return
  if (version !== undefined && version > SCHEMA_VERSION) {
    throw new StorageError('StorageTooNew', `the database has schema ${version}; this version knows ${SCHEMA_VERSION}`)
  }
  database.exec(`BEGIN IMMEDIATE; ${version === 1 ? fromFirstSchema : tables}
    INSERT INTO meta VALUES ('schema', '${SCHEMA_VERSION}') ON CONFLICT (k) DO UPDATE SET v = excluded.v;
    COMMIT`)
}

const goneTable = 'CREATE TABLE gone (rv INTEGER PRIMARY KEY, gr TEXT, ns TEXT, name TEXT, prev_rv INTEGER, v BLOB);'
const tables = `
  CREATE TABLE cur (id INTEGER PRIMARY KEY, gr TEXT, ns TEXT, name TEXT, rv INTEGER, v BLOB, prev_rv INTEGER);
  ${goneTable}`

/** The first schema had a log of all writes and a unique index. What its log no longer knows counts as an update. */
const fromFirstSchema = `
  ALTER TABLE cur ADD COLUMN prev_rv INTEGER;
  UPDATE cur SET prev_rv = coalesce((SELECT prev_rv FROM log WHERE log.rv = cur.rv), -1);
  ${goneTable}
  INSERT INTO gone SELECT rv, gr, ns, name, prev_rv, v FROM log WHERE op = 2;
  DROP TABLE log;
  DROP INDEX cur_key;`

/** Pages that are free anyway are used again; only this many are worth making the file anew. */
const MIN_FREE_PAGES = 1_024

/**
 * Gives the disk back what objects no longer take, when that is most of the file. Called once at the start: keeping
 * pages in order all the time would cost every write.
 */
export function returnFreePages(database: Database): void {
  const count = (name: string): number =>
    Number(Object.values(database.prepare(`PRAGMA ${name}`).get() as Record<string, number>)[0])
  const free = count('freelist_count')
  if (free < MIN_FREE_PAGES || free * 2 < count('page_count')) return
  try {
    database.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // Making the file anew needs room for both; on a nearly full disk the free pages are used again instead.
  }
}

export function prepareStatements(database: Database): Statements {
  return {
    page: database.prepare(
      'SELECT id, gr, ns, name, rv, prev_rv, CAST(v AS TEXT) AS v FROM cur WHERE id > ? ORDER BY id LIMIT ?',
    ),
    gone: database.prepare('SELECT rv, gr, ns, name, prev_rv, CAST(v AS TEXT) AS v FROM gone ORDER BY rv'),
    countGone: database.prepare('SELECT count(*) AS n FROM gone'),
    nthOldest: database.prepare('SELECT rv FROM gone ORDER BY rv LIMIT 1 OFFSET ?'),
    forget: database.prepare('DELETE FROM gone WHERE rv <= ?'),
    getMeta: database.prepare('SELECT v FROM meta WHERE k = ?'),
    setMeta: database.prepare('INSERT INTO meta VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v'),
    insert: database.prepare('INSERT INTO cur (id, gr, ns, name, rv, prev_rv, v) VALUES (?, ?, ?, ?, ?, ?, ?)'),
    replace: database.prepare('UPDATE cur SET rv = ?, prev_rv = ?, v = ? WHERE id = ?'),
    remove: database.prepare('DELETE FROM cur WHERE id = ?'),
    bury: database.prepare('INSERT INTO gone (rv, gr, ns, name, prev_rv, v) VALUES (?, ?, ?, ?, ?, ?)'),
    begin: database.prepare('BEGIN IMMEDIATE'),
    commit: database.prepare('COMMIT'),
  }
}
