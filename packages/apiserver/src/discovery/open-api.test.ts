import { afterAll, beforeAll, expect, it } from 'vitest'
import { openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
})
afterAll(() => api.server.close())

async function linkTo(part: string): Promise<string> {
  const { value } = await api.call('GET', '/openapi/v3')
  return value.paths[part].serverRelativeURL
}

it('a document under its hash may be kept for ever, without the hash it may not', async () => {
  const pinned = await api.call('GET', await linkTo('api/v1'))
  expect(pinned.response.headers['cache-control']).toBe('public, max-age=31536000, immutable')
  const plain = await api.call('GET', '/openapi/v3/api/v1')
  expect([plain.status, plain.response.headers['cache-control']]).toEqual([200, 'no-cache, private'])
  expect(plain.response.body).toEqual(pinned.response.body)
})

it('a hash of other times leads to that of now', async () => {
  const { status, response } = await api.call('GET', '/openapi/v3/apis/apps/v1?hash=OLD')
  expect([status, response.headers.location]).toEqual([301, await linkTo('apis/apps/v1')])
})

it.each(['/openapi/v3/apis/none.example.com/v1', '/openapi/v9', '/openapi'])('%s is 404', async (path) => {
  expect((await api.call('GET', path)).status).toBe(404)
})

it('/openapi/v2 is there without any definition, which older clients take as valid', async () => {
  expect((await api.call('GET', '/openapi/v2')).value).toMatchObject({ swagger: '2.0', definitions: {} })
})
