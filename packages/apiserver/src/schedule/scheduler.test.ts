import { afterAll, beforeAll, expect, it } from 'vitest'
import { MERGE, openServer, pod, pods, type ServerCaller } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer({ schedulesPods: true })
})
afterAll(() => api.server.close())

const nodeOf = async (name: string): Promise<unknown> => (await api.call('GET', `${pods}/${name}`)).value.spec.nodeName

it('a pod waits and says why, and is bound when a node becomes ready', async () => {
  await api.call('POST', pods, pod('early'))
  await expect
    .poll(async () => (await api.call('GET', `${pods}/early`)).value.status.conditions)
    .toMatchObject([{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }])
  await api.call('POST', '/api/v1/nodes', { metadata: { name: 'one' } })
  expect(await nodeOf('early')).toBeUndefined()
  const ready = { status: { conditions: [{ type: 'Ready', status: 'True' }] } }
  await api.call('PATCH', '/api/v1/nodes/one/status', ready, MERGE)
  await expect.poll(() => nodeOf('early')).toBe('one')
  await api.call('POST', pods, pod('late'))
  await expect.poll(() => nodeOf('late')).toBe('one')
  const { value } = await api.call('GET', `${pods}/late`)
  expect(value.status.conditions).toMatchObject([{ type: 'PodScheduled', status: 'True' }])
})
