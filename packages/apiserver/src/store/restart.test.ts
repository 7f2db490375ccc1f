import { spawn } from 'node:child_process'
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

it('starts while a namespace is on its way out, and finishes it', async () => {
  const before = await open()
  const held = { metadata: { name: 'going', finalizers: ['example.org/hold'] } }
  await before.call('POST', '/api/v1/namespaces', { metadata: { name: 'going' } })
  const maps = '/api/v1/namespaces/going/configmaps'
  await before.call('POST', maps, held)
  await before.call('DELETE', '/api/v1/namespaces/going')
  await expect
    .poll(async () => (await before.call('GET', `${maps}/going`)).value.metadata.deletionTimestamp)
    .toBeDefined()
  await expect.poll(async () => (await before.call('GET', accounts)).value.items).toEqual([])
  await before.server.close()
  const after = await open()
  expect((await after.call('GET', accounts)).value.items).toEqual([])
  const freed = [{ op: 'remove', path: '/metadata/finalizers' }]
  await after.call('PATCH', `${maps}/going`, freed, 'application/json-patch+json')
  await expect.poll(async () => (await after.call('GET', '/api/v1/namespaces/going')).status).toBe(404)
  await after.server.close()
})
const accounts = '/api/v1/namespaces/going/serviceaccounts'

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

it('a watcher that did not see a change before a deletion is told to list again, later ones resume', async () => {
  const before = await open()
  const { value: made } = await before.call('POST', configMaps, configMap('a'))
  const { value: changed } = await before.call('PUT', `${configMaps}/a`, configMap('a', { data: { x: '1' } }))
  await before.call('DELETE', `${configMaps}/a`)
  await before.server.close()
  const after = await open()
  const from = (version: string): string => `${configMaps}?watch=1&resourceVersion=${version}`
  expect((await after.events(from(made.metadata.resourceVersion), 1))[0]?.object).toMatchObject({ code: 410 })
  const [event] = await after.events(from(changed.metadata.resourceVersion), 1)
  expect([event?.type, event?.object.metadata?.name]).toEqual(['DELETED', 'a'])
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

it('131: after kill -9 in the middle of writing every acknowledged write is there, at its version', async () => {
  const source = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href)
  const writer = `
    import { writeSync } from 'node:fs'
    import { createApiServer } from ${source('../server/api-server.ts')}
    import { systemUser } from ${source('../auth/access.ts')}
    import { sqliteStorage } from ${source('../storage/sqlite-storage.ts')}
    const server = await createApiServer({ storage: sqliteStorage({ directory: process.argv[1] }) })
    let next = 0
    const write = async () => {
      for (;;) {
        const body = { metadata: { name: process.argv[2] + next++ } }
        const request = { method: 'POST', path: ${JSON.stringify(configMaps)}, query: new URLSearchParams(), headers: {} }
        const response = await server.handle({ ...request, user: systemUser, body })
        const { name, resourceVersion } = response.body.value.metadata
        writeSync(1, name + ' ' + resourceVersion + '\\n')
      }
    }
    await Promise.all([write(), write(), write(), write()])`
  const acknowledged = new Map<string, string>()
  const versions = new Set<string>()
  for (const round of ['a', 'b']) {
    const flags = ['--import', 'tsx', '--conditions=corral-source', '--input-type=module', '-e', writer, '--']
    const child = spawn(process.execPath, [...flags, directory, round], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
      if (output.length > 4_000) child.kill('SIGKILL')
    })
    await new Promise((resolve) => child.on('close', resolve))
    for (const line of output.split('\n').slice(0, -1)) {
      const [name = '', version = ''] = line.split(' ')
      expect(versions.has(version)).toBe(false)
      versions.add(version)
      acknowledged.set(name, version)
    }
  }
  expect(acknowledged.size).toBeGreaterThan(100)
  const api = await open()
  for (const [name, version] of acknowledged) {
    const { value } = await api.call('GET', `${configMaps}/${name}`)
    expect(value.metadata?.resourceVersion).toBe(version)
  }
  await api.server.close()
})
