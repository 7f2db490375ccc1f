import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { embeddedCrds } from '@corral/resources'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { sqliteStorage } from '../storage/sqlite-storage.js'
import { configMap, configMaps, openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-restart-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const open = (): Promise<ServerCaller> =>
  openServer({ storage: sqliteStorage({ directory, durability: 'normal' }), crds: embeddedCrds() })

it('everything is there after a restart: objects, definitions and the kinds they define', async () => {
  const before = await open()
  const { value } = await before.call('POST', configMaps, configMap('kept', { data: { a: 'b' } }))
  await before.server.close()
  const after = await open()
  expect((await after.call('GET', `${configMaps}/kept`)).value).toEqual(value)
  expect((await after.call('GET', '/apis/agents.x-k8s.io/v1beta1/sandboxes')).status).toBe(200)
  await after.server.close()
})

it('a restart writes nothing by itself', async () => {
  const before = await open()
  const { value } = await before.call('GET', configMaps)
  await before.server.close()
  const after = await open()
  expect((await after.call('GET', configMaps)).value.metadata.resourceVersion).toBe(value.metadata.resourceVersion)
  await after.server.close()
})

it('a watcher that saw everything resumes across a restart and misses nothing', async () => {
  const before = await open()
  await before.call('POST', configMaps, configMap('a'))
  const { value: last } = await before.call('PUT', `${configMaps}/a`, configMap('a', { data: { x: '1' } }))
  await before.call('POST', '/api/v1/namespaces/default/secrets', { metadata: { name: 'noise' } })
  await before.call('POST', configMaps, configMap('b'))
  await before.server.close()
  const after = await open()
  const watching = after.events(`${configMaps}?watch=1&resourceVersion=${last.metadata.resourceVersion}`, 2)
  await after.call('POST', configMaps, configMap('c'))
  expect((await watching).map((event) => event.object.metadata?.name)).toEqual(['b', 'c'])
  await after.server.close()
})

it('133: versions never repeat over ten restarts', async () => {
  let last = 0
  for (let round = 0; round < 10; round++) {
    const api = await open()
    const { value } = await api.call('POST', configMaps, configMap(`r${round}`))
    expect(Number(value.metadata.resourceVersion)).toBeGreaterThan(last)
    last = Number(value.metadata.resourceVersion)
    await api.server.close()
  }
})
