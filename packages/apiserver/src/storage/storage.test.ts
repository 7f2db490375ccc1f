import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import { build } from 'esbuild'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { memoryStorage } from './memory-storage.js'
import { sqliteStorage } from './sqlite-storage.js'
import type { StorageContents, StorageWrite } from './storage.js'
import { describeStorage, write } from './storage.test-suite.js'

describeStorage('memory', () => ({ make: () => memoryStorage(), isDurable: false, cleanUp() {} }))

// Inside the workspace, because the native module is found from where the program lies.
const programs = fileURLToPath(
  new URL(`../../../../node_modules/.cache/corral-journal-${process.pid}`, import.meta.url),
)
const threadProgram = join(programs, 'journal.mjs')
beforeAll(async () => {
  mkdirSync(programs, { recursive: true })
  await build({
    entryPoints: [fileURLToPath(new URL('./journal-thread.ts', import.meta.url))],
    outfile: threadProgram,
    bundle: true,
    platform: 'node',
    format: 'esm',
    conditions: ['corral-source'],
    external: ['@photostructure/sqlite'],
  })
})
afterAll(() => rmSync(programs, { recursive: true, force: true }))

for (const { where, ...options } of [
  { where: 'normal', durability: 'normal' },
  { where: 'full', durability: 'full' },
  { where: 'normal, in a thread', durability: 'normal', threadProgram },
  { where: 'full, in a thread', durability: 'full', threadProgram },
] as const) {
  describeStorage(`SQLite (${where})`, () => {
    const directory = mkdtempSync(join(tmpdir(), 'corral-storage-'))
    return {
      make: () => sqliteStorage({ directory, ...options }),
      isDurable: true,
      cleanUp: () => rmSync(directory, { recursive: true, force: true }),
    }
  })
}

describe('SQLite storage beyond the suite', () => {
  const directories: string[] = []
  const newDirectory = (): string => {
    const directory = mkdtempSync(join(tmpdir(), 'corral-storage-'))
    directories.push(directory)
    return directory
  }
  afterEach(() => {
    for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
  })

  it('refuses a second opener and names the process that holds it', async () => {
    const directory = newDirectory()
    const first = sqliteStorage({ directory })
    await first.open()
    await expect(sqliteStorage({ directory }).open()).rejects.toMatchObject({
      code: 'StorageLocked',
      message: expect.stringContaining(String(process.pid)),
    })
    await first.close()
  })

  it('takes over the lock of a process that no longer lives', async () => {
    const directory = newDirectory()
    const child = spawn('true')
    await new Promise((resolve) => child.on('exit', resolve))
    writeFileSync(join(directory, 'lock'), JSON.stringify({ pid: child.pid, started: '1' }))
    const storage = sqliteStorage({ directory })
    await expect(storage.open()).resolves.toMatchObject({ rows: [] })
    await storage.close()
  })

  it('takes over the lock of a killed process whose parent never asks how it ended', async () => {
    const directory = newDirectory()
    // It ends after the shell has become another program: a shell may still ask.
    const parent = spawn('sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] })
    try {
      const pid = Number(String(await new Promise((resolve) => parent.stdout.once('data', resolve))))
      const stat = (): string => readFileSync(`/proc/${pid}/stat`, 'utf8')
      await vi.waitUntil(() => stat().includes(') Z '), { timeout: 60_000 })
      const started = stat()
        .slice(stat().lastIndexOf(')') + 2)
        .split(' ')[19]
      writeFileSync(join(directory, 'lock'), JSON.stringify({ pid, started }))
      const storage = sqliteStorage({ directory })
      await expect(storage.open()).resolves.toMatchObject({ rows: [] })
      await storage.close()
    } finally {
      parent.kill('SIGKILL')
    }
  })

  it('skips the reserved versions after an unclean stop', async () => {
    const directory = newDirectory()
    const script = `
      import { sqliteStorage } from ${JSON.stringify(new URL('./sqlite-storage.ts', import.meta.url).href)}
      const storage = sqliteStorage({ directory: ${JSON.stringify(directory)} })
      const { lastRv } = await storage.open()
      const rv = lastRv + 1
      const object = { metadata: { name: 'a', namespace: 'ns', resourceVersion: String(rv) } }
      await storage.commit([{ rv, collection: 'c', namespace: 'ns', name: 'a', operation: 'create', previousRv: 0, object }])
      process.stdout.write(String(rv))
      process.kill(process.pid, 'SIGKILL')`
    let output = ''
    try {
      execFileSync(process.execPath, [
        '--import',
        'tsx',
        '--conditions=corral-source',
        '--input-type=module',
        '-e',
        script,
      ])
    } catch (error) {
      output = String((error as { stdout: Buffer }).stdout)
    }
    const acknowledged = Number(output)
    expect(acknowledged).toBeGreaterThan(0)
    const storage = sqliteStorage({ directory })
    const contents = await storage.open()
    expect(contents.rows.map((row) => row.name)).toEqual(['a'])
    expect(contents.lastRv).toBeGreaterThan(acknowledged + 1000)
    await storage.close()
  })

  const written = async (directory: string, writes: (rv: number) => StorageWrite[]): Promise<StorageContents> => {
    const storage = sqliteStorage({ directory, durability: 'normal' })
    const { lastRv } = await storage.open()
    await storage.commit(writes(lastRv))
    await storage.close()
    const again = sqliteStorage({ directory })
    const contents = await again.open()
    await again.close()
    return contents
  }

  it('remembers as many deletions as it promises, and nothing from before the last one it forgot', async () => {
    const directory = newDirectory()
    const storage = sqliteStorage({ directory, durability: 'normal' })
    const { lastRv } = await storage.open()
    let rv = lastRv
    await storage.commit([write(++rv, 'old', 'create')])
    for (let group = 0; group < 60; group++) {
      await storage.commit(
        Array.from({ length: 50 }, (_, index) => [
          write(++rv, `o${index}`, 'create'),
          write(++rv, `o${index}`, 'delete', rv - 1),
        ]).flat(),
      )
    }
    await storage.commit(Array.from({ length: 2_000 }, () => write(++rv, 'a', 'delete', rv - 1)))
    await storage.close()
    const again = sqliteStorage({ directory })
    const { history, rows } = await again.open()
    expect(rows.map(({ name }) => name)).toEqual(['old'])
    expect(history.at(-1)?.rv).toBe(rv)
    expect(history).toHaveLength(2_000)
    await again.close()
  })

  it('gives the disk back what most objects no longer take, at the next start', async () => {
    const directory = newDirectory()
    const storage = sqliteStorage({ directory, durability: 'normal' })
    let { lastRv: rv } = await storage.open()
    const writeAll = (operation: 'create' | 'update', size: number): Promise<void> | undefined =>
      storage.commit(
        Array.from({ length: 1_000 }, (_, index) => {
          const object = { metadata: { name: `o${index}`, annotations: { text: 'x'.repeat(size) } } }
          return { ...write(++rv, `o${index}`, operation, operation === 'create' ? 0 : rv - 1_000), object }
        }),
      )
    const sizeOfFile = (): number => statSync(join(directory, 'state.db')).size
    await writeAll('create', 16_000)
    await writeAll('update', 10)
    await storage.close()
    expect(sizeOfFile()).toBeGreaterThan(16_000_000)
    const again = sqliteStorage({ directory })
    const { rows } = await again.open()
    expect(rows).toHaveLength(1_000)
    await again.close()
    expect(sizeOfFile()).toBeLessThan(1_000_000)
  })

  it('tells the history without what was replaced, and what each write replaced', async () => {
    const { history } = await written(newDirectory(), (rv) => [
      write(rv + 1, 'a', 'create'),
      write(rv + 2, 'b', 'create'),
      write(rv + 3, 'c', 'create'),
      write(rv + 4, 'a', 'update', rv + 1),
      write(rv + 5, 'b', 'delete', rv + 2),
      write(rv + 6, 'b', 'create'),
      write(rv + 7, 'b', 'update', rv + 6),
    ])
    const first = (history[0]?.rv ?? 0) - 3
    expect(history.map(({ rv, name, operation, previousRv }) => [rv - first, name, operation, previousRv])).toEqual([
      [3, 'c', 'create', 0],
      [4, 'a', 'update', first + 1],
      [5, 'b', 'delete', first + 2],
      [7, 'b', 'update', first + 6],
    ])
  })

  it('opens a database of the first schema with all its objects and as much history as is sure', async () => {
    const directory = newDirectory()
    const database = new DatabaseSync(join(directory, 'state.db'))
    const objectOf = (name: string, rv: number): string => JSON.stringify(write(rv, name, 'create').object)
    database.exec(`
      CREATE TABLE meta (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID;
      CREATE TABLE cur (id INTEGER PRIMARY KEY, gr TEXT, ns TEXT, name TEXT, rv INTEGER, v BLOB);
      CREATE UNIQUE INDEX cur_key ON cur (gr, ns, name);
      CREATE TABLE log (rv INTEGER PRIMARY KEY, gr TEXT, ns TEXT, name TEXT, op INTEGER, prev_rv INTEGER, v BLOB);
      INSERT INTO meta VALUES ('schema', '1'), ('clean_rv', '40'), ('rv_reserved', '10000'), ('compact_rv', '12');
      INSERT INTO cur (gr, ns, name, rv, v) VALUES ('configmaps', 'ns', 'old', 5, '${objectOf('old', 5)}'),
        ('configmaps', 'ns', 'made', 20, '${objectOf('made', 20)}'),
        ('configmaps', 'ns', 'changed', 22, '${objectOf('changed', 22)}');
      INSERT INTO log VALUES (20, 'configmaps', 'ns', 'made', 0, 0, NULL), (21, 'configmaps', 'ns', 'changed', 0, 0, NULL),
        (22, 'configmaps', 'ns', 'changed', 1, 21, NULL), (30, 'configmaps', 'ns', 'x', 2, 13, '${objectOf('x', 30)}');`)
    database.close()
    const contents = await written(directory, (rv) => [
      write(rv + 1, 'new', 'create'),
      write(rv + 2, 'old', 'delete', 5),
    ])
    expect(contents.rows.map(({ name }) => name)).toEqual(['made', 'changed', 'new'])
    expect(contents.history.map(({ rv, name, operation }) => [rv, name, operation])).toEqual([
      [20, 'made', 'create'],
      [22, 'changed', 'update'],
      [30, 'x', 'delete'],
      [41, 'new', 'create'],
      [42, 'old', 'delete'],
    ])
  })

  it('does not touch a database of a later version', async () => {
    const directory = newDirectory()
    const database = new DatabaseSync(join(directory, 'state.db'))
    database.exec(
      "CREATE TABLE meta (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID; INSERT INTO meta VALUES ('schema', '99')",
    )
    database.close()
    await expect(sqliteStorage({ directory }).open()).rejects.toMatchObject({ code: 'StorageTooNew' })
  })

  it('says through a thread what is wrong with a database, as it does without one', async () => {
    const directory = newDirectory()
    writeFileSync(
      join(directory, 'state.db'),
      'no database at all, and longer than the header of one would be'.repeat(9),
    )
    for (const options of [{ directory }, { directory, threadProgram }]) {
      await expect(sqliteStorage(options).open()).rejects.toMatchObject({
        name: 'StorageError',
        code: 'StorageCorrupt',
        message: expect.stringContaining(directory),
      })
    }
  })

  it('refuses a database with an entry that is no JSON, leaving nothing behind that keeps it', async () => {
    const directory = newDirectory()
    await written(directory, (rv) => [write(rv + 1, 'a', 'create')])
    const database = new DatabaseSync(join(directory, 'state.db'))
    database.exec("UPDATE cur SET v = '{'")
    database.close()
    for (const options of [{ directory }, { directory, threadProgram }, { directory }]) {
      await expect(sqliteStorage(options).open()).rejects.toMatchObject({ code: 'StorageCorrupt' })
    }
  })

  it('fails every later write, and still closes, once its thread is gone', async () => {
    const directory = newDirectory()
    const dying = join(programs, 'dying.mjs')
    writeFileSync(
      dying,
      `import { parentPort } from 'node:worker_threads'
       parentPort.on('message', ({ type }) =>
         type === 'open' ? parentPort.postMessage({ type: 'done', state: { compactedRv: 0, lastRv: 1 } }) : process.exit(7))`,
    )
    const storage = sqliteStorage({ directory, threadProgram: dying })
    await storage.open()
    await expect(storage.commit([write(2, 'a', 'create')])).rejects.toThrow('ended with 7')
    await expect(storage.commit([write(3, 'b', 'create')])).rejects.toThrow('ended with 7')
    await storage.close()
  })
})
