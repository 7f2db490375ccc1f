import { afterAll, beforeAll, expect, it } from 'vitest'
import { configMap, configMaps, openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
})
afterAll(() => api.server.close())

it.each([
  { method: 'POST', what: 'a create outside any namespace' },
  { method: 'DELETE', what: 'a delete of everything in all namespaces' },
])('$what is 405, and nothing is gone', async ({ method }) => {
  await api.call('POST', configMaps, configMap('kept'))
  const body = method === 'POST' ? configMap('new') : undefined
  expect(await api.call(method, '/api/v1/configmaps', body)).toMatchObject({
    status: 405,
    value: { reason: 'MethodNotAllowed' },
  })
  expect((await api.call('GET', `${configMaps}/kept`)).status).toBe(200)
})

const endpoints = '/api/v1/namespaces/default/endpoints'

it.each([
  { what: 'an object that is not there', method: 'GET', url: `${endpoints}/none`, status: 404 },
  { what: 'a selector that makes no sense', method: 'GET', url: `${endpoints}?labelSelector=a b`, status: 400 },
  { what: 'a delete of nothing', method: 'DELETE', url: `${endpoints}/none`, status: 404 },
  { what: 'a delete of everything', method: 'DELETE', url: endpoints, status: 200 },
  { what: 'a list', method: 'GET', url: endpoints, status: 200 },
])('a deprecated version warns whatever comes of it: $what', async ({ method, url, status }) => {
  const { response } = await api.call(method, url)
  expect(response.status).toBe(status)
  expect(response.headers.warning).toBe(
    '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"',
  )
})
