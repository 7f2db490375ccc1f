import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { memoryStorage } from './memory-storage.js'
import { sqliteStorage } from './sqlite-storage.js'
import { describeStorage, write } from './storage.test-suite.js'

describeStorage('memory', () => ({ make: () => memoryStorage(), isDurable: false, cleanUp() {} }))

for (const durability of ['normal', 'full'] as const) {
  describeStorage(`SQLite (${durability})`, () => {
    const directory = mkdtempSync(join(tmpdir(), 'corral-storage-'))
    return {
      make: () => sqliteStorage({ directory, durability }),
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

  it('keeps a bounded log and says how far back it reaches', async () => {
    const directory = newDirectory()
    const storage = sqliteStorage({ directory, durability: 'normal' })
    const { lastRv } = await storage.open()
    let rv = lastRv
    for (let group = 0; group < 60; group++) {
      await storage.commit(
        Array.from({ length: 100 }, () => {
          rv++
          return write(rv, 'a', rv === lastRv + 1 ? 'create' : 'update', rv === lastRv + 1 ? 0 : rv - 1)
        }),
      )
    }
    await storage.close()
    const again = sqliteStorage({ directory })
    const contents = await again.open()
    expect(contents.history.at(-1)?.rv).toBe(rv)
    expect(contents.history.length).toBeLessThanOrEqual(2000)
    await again.close()
  })
})
