import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'
import { sqliteStorage } from './sqlite-storage.js'

const mayMount = process.getuid?.() === 0 && process.platform === 'linux'

describe.skipIf(!mayMount)(`a server on a full disk${mayMount ? '' : ' (only root may mount one)'}`, () => {
  let directory: string
  let api: ServerCaller
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'corral-full-'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'corral-test', directory])
    api = await openServer({ storage: sqliteStorage({ directory: join(directory, 'api') }) })
  })
  afterEach(async () => {
    await api.server.close()
    execFileSync('umount', ['-l', directory])
    rmSync(directory, { recursive: true, force: true })
  })

  const path = '/api/v1/namespaces/default/configmaps'
  const big = { text: 'x'.repeat(300_000) }
  const create = (name: string) => api.call('POST', path, { metadata: { name }, data: big })
  const names = async (): Promise<string[]> =>
    (await api.call('GET', path)).value.items.map((item: { metadata: { name: string } }) => item.metadata.name)

  it('refuses writes as DiskFull, still reads, says so, and takes writes again once there is room', async () => {
    expect((await create('before')).status).toBe(201)
    const filler = join(directory, 'filler')
    expect(() => writeFileSync(filler, Buffer.alloc(16e6))).toThrow('ENOSPC')

    const { status, value, response } = await create('during')
    expect([status, value.reason, response.headers['retry-after']]).toEqual([507, 'DiskFull', '1'])
    expect(value.message).toContain(`the disk of ${join(directory, 'api')} is full`)
    const changed = await api.call('PUT', `${path}/before`, {
      metadata: { name: 'before' },
      data: { text: 'y'.repeat(300_000) },
    })
    expect([changed.status, changed.value.reason]).toEqual([507, 'DiskFull'])
    expect((await api.call('DELETE', `${path}/before`)).status).toBeOneOf([200, 507])
    expect((await api.call('GET', path)).status).toBe(200)
    expect((await api.call('GET', `${path}/during`)).status).toBe(404)
    expect((await api.call('GET', '/readyz')).status).toBe(500)
    expect((await api.call('GET', '/livez')).status).toBe(200)

    rmSync(filler)
    expect((await create('during')).status).toBe(201)
    expect((await create('after')).status).toBe(201)
    expect((await api.call('GET', '/readyz')).status).toBe(200)
    const seen = await names()
    expect(seen).toEqual(expect.arrayContaining(['after', 'during']))

    await api.server.close()
    api = await openServer({ storage: sqliteStorage({ directory: join(directory, 'api') }) })
    expect(await names()).toEqual(seen)
  })
})
