import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ensureCertificates } from '../http/certificates.js'
import { MERGE, openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

interface Thing {
  apiVersion: string
  kind: string
  metadata: { name: string; labels?: Record<string, string> }
  spec: { size?: number; sizes?: number[] }
}

let api: ServerCaller
let webhook: Server
let directory: string
/** How many objects each call was about. */
let calls: number[] = []
let isBroken = false

/** `v1` has one size, `v2` a list of them. */
function convert(object: Thing, apiVersion: string): object {
  const { size, sizes } = object.spec
  const spec = apiVersion.endsWith('/v2') ? { sizes: [size ?? 0] } : { size: sizes?.[0] ?? 0 }
  const labels = { ...object.metadata.labels, converted: 'yes' }
  return { ...object, apiVersion, spec, metadata: { ...object.metadata, labels } }
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'corral-webhook-'))
  const tls = await ensureCertificates(directory)
  webhook = createServer(tls.server, (request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      const { uid, objects, desiredAPIVersion } = JSON.parse(text).request
      calls.push(objects.length)
      const convertedObjects = objects.map((object: Thing) => convert(object, desiredAPIVersion))
      const result = isBroken ? { status: 'Failed', message: 'out of order' } : { status: 'Success' }
      response.end(JSON.stringify({ response: { uid, result, convertedObjects } }))
    })
  })
  await new Promise<void>((resolve) => webhook.listen(0, '127.0.0.1', resolve))
  const { port } = webhook.address() as AddressInfo
  api = await openServer()
  const clientConfig = { url: `https://127.0.0.1:${port}/x`, caBundle: Buffer.from(tls.ca.cert).toString('base64') }
  const version = (name: string, storage: boolean, properties: object): object => ({
    name,
    served: true,
    storage,
    schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
  })
  const spec = {
    group: 'example.com',
    scope: 'Cluster',
    names: { plural: 'things', kind: 'Thing' },
    versions: [
      version('v1', true, { size: { type: 'integer' } }),
      version('v2', false, { sizes: { type: 'array', items: { type: 'integer' } } }),
    ],
    conversion: { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } },
  }
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  expect((await api.call('POST', definitions, { metadata: { name: 'things.example.com' }, spec })).status).toBe(201)
})
afterAll(async () => {
  await api.server.close()
  await new Promise((resolve) => webhook.close(resolve))
  rmSync(directory, { recursive: true, force: true })
})
beforeEach(() => {
  calls = []
  isBroken = false
})

const things = (version: string, name = ''): string => `/apis/example.com/${version}/things${name && `/${name}`}`
const thing = (version: string, name: string, spec: object): object => ({
  apiVersion: `example.com/${version}`,
  kind: 'Thing',
  metadata: { name },
  spec,
})

describe('a conversion webhook on this machine', () => {
  it('converts what is written in another version, and back for who wrote it', async () => {
    const created = await api.call('POST', things('v2'), thing('v2', 'sent', { sizes: [3] }))
    expect([created.status, created.value.spec]).toEqual([201, { sizes: [3] }])
    const { value } = await api.call('GET', things('v1', 'sent'))
    expect(value).toMatchObject({ apiVersion: 'example.com/v1', spec: { size: 3 } })
    expect(value.metadata.uid).toBe(created.value.metadata.uid)
    expect([created.value, value].map(({ metadata }) => metadata.labels.converted)).toEqual(['yes', 'yes'])
  })

  it('changes and deletes in another version, with no call for what it knows', async () => {
    await api.call('POST', things('v1'), thing('v1', 'changed', { size: 1 }))
    const patched = await api.call('PATCH', things('v2', 'changed'), { spec: { sizes: [8] } }, MERGE)
    expect([patched.status, patched.value.spec]).toEqual([200, { sizes: [8] }])
    expect((await api.call('GET', things('v1', 'changed'))).value.spec).toEqual({ size: 8 })
    calls = []
    expect((await api.call('GET', things('v2', 'changed'))).value.spec).toEqual({ sizes: [8] })
    expect((await api.call('DELETE', things('v2', 'changed'))).status).toBe(200)
    expect((await api.call('GET', things('v1', 'changed'))).status).toBe(404)
    expect(calls).toEqual([])
  })

  it('converts a list in one call', async () => {
    for (const name of ['a', 'b', 'c']) await api.call('POST', things('v1'), thing('v1', `list-${name}`, { size: 2 }))
    calls = []
    const { value } = await api.call('GET', things('v2'))
    const sizes = value.items.filter((each: Thing) => each.metadata.name.startsWith('list-'))
    expect(sizes.map((each: Thing) => each.spec)).toEqual([{ sizes: [2] }, { sizes: [2] }, { sizes: [2] }])
    expect(calls.length).toBeLessThanOrEqual(1)
  })

  it.each([
    { written: 'v2', watched: 'v1', spec: { sizes: [5] }, shown: { size: 5 } },
    { written: 'v1', watched: 'v2', spec: { size: 6 }, shown: { sizes: [6] } },
  ])('shows a watch of $watched what is written in $written', async ({ written, watched, spec, shown }) => {
    const name = `seen-${written}`
    const { value } = await api.call('GET', things(watched))
    const watch = (version: string): string =>
      `${things(watched)}?watch=1&resourceVersion=${version}&fieldSelector=metadata.name%3D${name}`
    const live = api.events(watch(value.metadata.resourceVersion), 2)
    await api.call('POST', things(written), thing(written, name, spec))
    await api.call('DELETE', things(written, name))
    for (const events of [await live, await api.events(watch(value.metadata.resourceVersion), 2)]) {
      expect(events.map(({ type }) => type)).toEqual(['ADDED', 'DELETED'])
      expect(events.map(({ object }) => (object as Thing).spec)).toEqual([shown, shown])
    }
  })

  it('is told about when it fails, and nothing is written', async () => {
    isBroken = true
    const { status, value } = await api.call('POST', things('v2'), thing('v2', 'failed', { sizes: [99] }))
    expect(status).toBe(500)
    expect(value.message).toBe('conversion webhook for example.com/v2, Kind=Thing failed: out of order')
    isBroken = false
    expect((await api.call('GET', things('v1', 'failed'))).status).toBe(404)
  })
})
