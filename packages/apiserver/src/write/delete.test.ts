import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  configMap,
  configMaps,
  MERGE,
  openServer,
  pod,
  pods,
  type ServerCaller,
} from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
})
afterAll(() => api.server.close())

const gone = (url: string): Promise<void> => expect.poll(async () => (await api.call('GET', url)).status).toBe(404)

describe('delete', () => {
  it('90: answers with a Status for config maps and with the object for pods', async () => {
    await api.call('POST', configMaps, configMap('x'))
    expect((await api.call('DELETE', `${configMaps}/x`)).value).toMatchObject({ kind: 'Status', status: 'Success' })
    await api.call('POST', pods, pod('x'))
    expect((await api.call('DELETE', `${pods}/x`)).value).toMatchObject({ kind: 'Pod' })
    expect((await api.call('GET', `${pods}/x`)).status).toBe(404)
  })

  it('91, 92: finalizers hold the object until they are gone, and none may be added', async () => {
    await api.call('POST', configMaps, { metadata: { name: 'held', finalizers: ['example.com/a'] } })
    const marked = await api.call('DELETE', `${configMaps}/held`)
    expect(marked.value.metadata.deletionTimestamp).toBeDefined()
    const again = await api.call('DELETE', `${configMaps}/held`)
    expect(again.value.metadata.resourceVersion).toBe(marked.value.metadata.resourceVersion)
    const more = { metadata: { finalizers: ['example.com/a', 'example.com/b'] } }
    const added = await api.call('PATCH', `${configMaps}/held`, more, MERGE)
    expect([added.status, added.value.message]).toEqual([
      422,
      expect.stringContaining('no new finalizers can be added'),
    ])
    expect((await api.call('PATCH', `${configMaps}/held`, { metadata: { finalizers: null } }, MERGE)).status).toBe(200)
    expect((await api.call('GET', `${configMaps}/held`)).status).toBe(404)
  })

  it('93: preconditions on uid and version', async () => {
    const { value } = await api.call('POST', configMaps, configMap('pre'))
    const { uid, resourceVersion } = value.metadata
    const remove = (preconditions: object): ReturnType<ServerCaller['call']> =>
      api.call('DELETE', `${configMaps}/pre`, { preconditions })
    const says = (text: string): object => ({ status: 409, value: { message: expect.stringContaining(text) } })
    expect(await remove({ uid: 'other' })).toMatchObject(says('UID in the precondition (other)'))
    expect(await remove({ resourceVersion: '1' })).toMatchObject(says('ResourceVersion in the precondition (1)'))
    expect((await remove({ uid, resourceVersion })).status).toBe(200)
  })

  it('94: a bound pod gets its grace, a later delete only shortens it', async () => {
    await api.call('POST', pods, pod('graceful', { nodeName: 'n' }))
    expect((await api.call('DELETE', `${pods}/graceful`)).value.metadata.deletionGracePeriodSeconds).toBe(30)
    const longer = await api.call('DELETE', `${pods}/graceful?gracePeriodSeconds=60`)
    expect(longer.value.metadata.deletionGracePeriodSeconds).toBe(30)
    const shorter = await api.call('DELETE', `${pods}/graceful?gracePeriodSeconds=5`)
    expect(shorter.value.metadata.deletionGracePeriodSeconds).toBe(5)
    await api.call('DELETE', `${pods}/graceful?gracePeriodSeconds=0`)
    expect((await api.call('GET', `${pods}/graceful`)).status).toBe(404)
  })

  it('100: a collection by selector', async () => {
    await api.call('POST', configMaps, { metadata: { name: 'many-1', labels: { many: 'yes' } } })
    await api.call('POST', configMaps, { metadata: { name: 'many-2', labels: { many: 'yes' } } })
    await api.call('POST', configMaps, configMap('one'))
    const { value } = await api.call('DELETE', `${configMaps}?labelSelector=many=yes`)
    expect(value.items).toHaveLength(2)
    expect((await api.call('GET', `${configMaps}/one`)).status).toBe(200)
  })

  it('103: an eviction deletes the pod', async () => {
    await api.call('POST', pods, pod('evicted'))
    expect((await api.call('POST', `${pods}/evicted/eviction`, { metadata: { name: 'evicted' } })).status).toBe(201)
    expect((await api.call('GET', `${pods}/evicted`)).status).toBe(404)
  })
})

describe('garbage and namespaces', () => {
  const owned = async (name: string, owner: string): Promise<object> => {
    const { value } = await api.call('GET', `${configMaps}/${owner}`)
    const reference = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: owner,
      uid: value.metadata.uid,
      blockOwnerDeletion: true,
    }
    return { metadata: { name, ownerReferences: [reference] } }
  }

  it('95: dependents vanish after their owner', async () => {
    await api.call('POST', configMaps, configMap('owner'))
    await api.call('POST', configMaps, await owned('dependent', 'owner'))
    await api.call('DELETE', `${configMaps}/owner`)
    await gone(`${configMaps}/dependent`)
  })

  it('96: in the foreground the owner goes last', async () => {
    await api.call('POST', configMaps, configMap('front'))
    await api.call('POST', configMaps, await owned('front-child', 'front'))
    await api.call('DELETE', `${configMaps}/front?propagationPolicy=Foreground`)
    await gone(`${configMaps}/front`)
    expect((await api.call('GET', `${configMaps}/front-child`)).status).toBe(404)
  })

  it('97: orphans stay, without their reference', async () => {
    await api.call('POST', configMaps, configMap('parent'))
    await api.call('POST', configMaps, await owned('orphan', 'parent'))
    await api.call('DELETE', `${configMaps}/parent?propagationPolicy=Orphan`)
    await gone(`${configMaps}/parent`)
    expect((await api.call('GET', `${configMaps}/orphan`)).value.metadata.ownerReferences ?? []).toEqual([])
  })

  it('101: a namespace takes everything in it along, and its name can be used again', async () => {
    const made = await api.call('POST', '/api/v1/namespaces', { metadata: { name: 'room' } })
    await api.call('POST', '/api/v1/namespaces/room/configmaps', configMap('inside'))
    await api.call('POST', '/api/v1/namespaces/room/pods', pod('inside'))
    expect((await api.call('DELETE', '/api/v1/namespaces/room')).value.status.phase).toBe('Terminating')
    await gone('/api/v1/namespaces/room')
    const again = await api.call('POST', '/api/v1/namespaces', { metadata: { name: 'room' } })
    expect(again.status).toBe(201)
    expect(again.value.metadata.uid).not.toBe(made.value.metadata.uid)
    expect((await api.call('GET', '/api/v1/namespaces/room/pods')).value.items).toEqual([])
  })
})
