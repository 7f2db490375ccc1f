import { afterAll, beforeAll, expect, it } from 'vitest'
import { openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
})
afterAll(() => api.server.close())

let count = 0
async function classOf(part: object): Promise<string | undefined> {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...part }
  const body = { metadata: { name: `claim-${++count}` }, spec }
  const { status, value } = await api.call('POST', '/api/v1/namespaces/default/persistentvolumeclaims', body)
  expect(status).toBe(201)
  return value.spec.storageClassName
}

it('a claim that names no class gets the default one, where there is one', async () => {
  expect(await classOf({})).toBeUndefined()
  for (const [name, isDefault] of [
    ['other', 'false'],
    ['local', 'true'],
  ] as const) {
    const annotations = { 'storageclass.kubernetes.io/is-default-class': isDefault }
    const body = { metadata: { name, annotations }, provisioner: 'example.com/p' }
    expect((await api.call('POST', '/apis/storage.k8s.io/v1/storageclasses', body)).status).toBe(201)
  }
  expect(await classOf({})).toBe('local')
  expect(await classOf({ storageClassName: 'other' })).toBe('other')
  expect(await classOf({ storageClassName: '' })).toBe('')
})
