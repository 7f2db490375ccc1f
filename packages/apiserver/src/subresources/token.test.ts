import { afterAll, beforeAll, expect, it } from 'vitest'
import { openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
})
afterAll(() => api.server.close())

it.each([
  { asks: 'ten minutes', expirationSeconds: 600, status: 201, says: undefined },
  { asks: 'the longest time there is', expirationSeconds: 2 ** 32, status: 201, says: undefined },
  { asks: 'less than ten minutes', expirationSeconds: 599, status: 422, says: 'less than 10 minutes' },
  { asks: 'longer than that', expirationSeconds: 2 ** 32 + 1, status: 422, says: 'larger than 2^32 seconds' },
  { asks: 'half a second more', expirationSeconds: 600.5, status: 400, says: 'whole number' },
  { asks: 'more than any clock can show', expirationSeconds: 1e21, status: 400, says: 'whole number' },
])('a token request that asks for $asks is answered with $status', async ({ expirationSeconds, status, says }) => {
  const path = '/api/v1/namespaces/default/serviceaccounts/default/token'
  const answer = await api.call('POST', path, { spec: { expirationSeconds } })
  expect(answer.status).toBe(status)
  if (says) expect(answer.value.message).toContain(says)
  else expect(Date.parse(answer.value.status.expirationTimestamp)).toBeGreaterThan(Date.now())
})
