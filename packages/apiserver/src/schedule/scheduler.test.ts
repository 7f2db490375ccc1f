import { afterAll, beforeAll, expect, it } from 'vitest'
import { memoryStorage } from '../storage/memory-storage.js'
import type { Storage } from '../storage/storage.js'
import { MERGE, openServer, pod, pods, type ServerCaller } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
/** What was handed to the storage, group by group. */
const groups: string[][] = []
/** While set, what is handed to the storage waits for it. */
let held: Promise<void> | undefined
beforeAll(async () => {
  const memory = memoryStorage()
  const storage: Storage = {
    ...memory,
    commit(writes) {
      groups.push(writes.map(({ operation, name }) => `${operation} ${name}`))
      return held ?? memory.commit(writes)
    },
  }
  api = await openServer({ schedulesPods: true, storage })
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

it('a watcher sees a pod without its node first, then with it, and both went to the storage together', async () => {
  const { resourceVersion } = (await api.call('GET', pods)).value.metadata
  groups.length = 0
  await api.call('POST', pods, pod('watched'))
  const events = await api.events(`${pods}?watch=1&resourceVersion=${resourceVersion}`, 2)
  const seen = events.map(({ type, object }) => [type, (object as { spec?: { nodeName?: string } }).spec?.nodeName])
  expect(seen).toEqual([
    ['ADDED', undefined],
    ['MODIFIED', 'one'],
  ])
  expect(groups).toEqual([['create watched', 'update watched']])
})

it('a pod that is created while its node’s readiness is on its way to the disk is bound', async () => {
  const status = (ready: string): Promise<unknown> =>
    api.call('PATCH', '/api/v1/nodes/one/status', { status: { conditions: [{ type: 'Ready', status: ready }] } }, MERGE)
  await status('False')
  let release = (): void => {}
  held = new Promise((resolve) => {
    release = resolve
  })
  groups.length = 0
  const isReady = status('True')
  await expect.poll(() => groups).toEqual([['update one']])
  const created = api.call('POST', pods, pod('between'))
  // It is queued behind the node, with what the scheduler says of it: no request waits for anything else here.
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  release()
  held = undefined
  await Promise.all([isReady, created])
  await expect.poll(() => nodeOf('between')).toBe('one')
})
