import { afterAll, beforeAll, expect, it } from 'vitest'
import { openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
})
afterAll(() => api.server.close())

const version = (name: string, storage: boolean): object => ({
  name,
  served: true,
  storage,
  schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object' } } } },
})

async function define(plural: string, kind: string, conversion: object, isEmpty = false): Promise<void> {
  const spec = {
    group: 'example.com',
    scope: 'Cluster',
    names: { plural, kind },
    versions: [version('v1', true), version('v2', false)],
    conversion,
  }
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  const { status } = await api.call('POST', definitions, { metadata: { name: `${plural}.example.com` }, spec })
  expect(status).toBe(201)
  if (isEmpty) return
  const object = { apiVersion: 'example.com/v1', kind, metadata: { name: 'one' } }
  expect((await api.call('POST', `/apis/example.com/v1/${plural}`, object)).status).toBe(201)
}

it('without a strategy only the version is another', async () => {
  await define('plains', 'Plain', { strategy: 'None' })
  const { status, value } = await api.call('GET', '/apis/example.com/v2/plains/one')
  expect([status, value.apiVersion]).toEqual([200, 'example.com/v2'])
})

it('a webhook that is a service is not called: its objects are served in the version they were written in, another is 500', async () => {
  const clientConfig = { service: { name: 'x', namespace: 'default' }, caBundle: 'Cg==' }
  await define('hookeds', 'Hooked', {
    strategy: 'Webhook',
    webhook: { clientConfig, conversionReviewVersions: ['v1'] },
  })
  expect((await api.call('GET', '/apis/example.com/v1/hookeds/one')).status).toBe(200)
  const { status, value } = await api.call('GET', '/apis/example.com/v2/hookeds/one')
  expect([status, value.reason]).toEqual([500, 'InternalError'])
  expect(value.message).toContain('conversion webhook for example.com/v1, Kind=Hooked failed')
})

it('a watch that cannot show an object ends, and everybody else goes on', async () => {
  const clientConfig = { service: { name: 'x', namespace: 'default' } }
  const webhook = { clientConfig, conversionReviewVersions: ['v1'] }
  await define('watcheds', 'Watched', { strategy: 'Webhook', webhook }, true)
  const { response } = await api.call('GET', '/apis/example.com/v2/watcheds?watch=1')
  if (response.body.type !== 'watch') throw new Error('no watch')
  const object = { apiVersion: 'example.com/v1', kind: 'Watched', metadata: { name: 'one' } }
  expect((await api.call('POST', '/apis/example.com/v1/watcheds', object)).status).toBe(201)
  const types = []
  for await (const frame of response.body.frames) types.push(frame.event.type)
  expect(types).toEqual(['ERROR'])
  const other = { metadata: { name: 'other' } }
  expect((await api.call('POST', '/api/v1/namespaces/default/configmaps', other)).status).toBe(201)
})
