import type { KubeObject, OwnerReference } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { controllingOwner, enqueueEvent, generationChanged, hasLabel, itself, labelled } from './event-mapping.js'
import { WorkQueue } from './work-queue.js'

const kind = { group: 'agents.x-k8s.io', kind: 'Sandbox', namespaced: true }
const owner = (change: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: 'agents.x-k8s.io/v1beta1',
  kind: 'Sandbox',
  name: 'box',
  uid: 'u',
  controller: true,
  ...change,
})
const owned = (...ownerReferences: OwnerReference[]): KubeObject => ({
  metadata: { name: 'pod', namespace: 'ns', ownerReferences },
})

describe('mapping to owners', () => {
  it.each<{ when: string; object: KubeObject; keys: string[] }>([
    { when: 'the controller is of the kind', object: owned(owner()), keys: ['ns/box'] },
    {
      when: 'it was written in another version',
      object: owned(owner({ apiVersion: 'agents.x-k8s.io/v1alpha1' })),
      keys: ['ns/box'],
    },
    { when: 'the group differs', object: owned(owner({ apiVersion: 'apps/v1' })), keys: [] },
    { when: 'the owner does not control', object: owned(owner({ controller: false })), keys: [] },
    { when: 'nobody owns it', object: owned(), keys: [] },
  ])('when $when', ({ object, keys }) => {
    expect([...controllingOwner(kind)(object)]).toEqual(keys)
  })
})

describe('enqueueing', () => {
  it('wakes the old and the new owner of an object that changed hands', () => {
    const queue = new WorkQueue({ name: 'test' })
    const update = { type: 'update', old: owned(owner({ name: 'a' })), object: owned(owner({ name: 'b' })) } as const
    enqueueEvent(queue, update, controllingOwner(kind))
    expect(queue.length).toBe(2)
    queue.close()
  })

  it('runs a waiting worker once for an update, though old and new name the same key', async () => {
    const queue = new WorkQueue({ name: 'test' })
    const handed = queue.next()
    enqueueEvent(queue, { type: 'update', old: owned(owner()), object: owned(owner()) }, controllingOwner(kind))
    expect(await handed).toBe('ns/box')
    queue.done('ns/box')
    expect(queue.length).toBe(0)
    queue.close()
  })

  it.each([
    { when: 'the generation moved', old: 1, now: 2, passes: true },
    { when: 'only status moved', old: 2, now: 2, passes: false },
  ])('generation filter, when $when', ({ old, now, passes }) => {
    const object = (generation: number): KubeObject => ({ metadata: { name: 'a', generation } })
    expect(generationChanged({ type: 'update', old: object(old), object: object(now) })).toBe(passes)
  })

  it('filters by label and maps by label value', () => {
    const queue = new WorkQueue({ name: 'test' })
    const object: KubeObject = { metadata: { name: 'a', namespace: 'ns', labels: { pool: 'p' } } }
    expect([...labelled('pool')(object)]).toEqual(['ns/p'])
    expect([...labelled('other')(object)]).toEqual([])
    enqueueEvent(queue, { type: 'delete', object }, itself, hasLabel('other'))
    expect(queue.length).toBe(0)
    enqueueEvent(queue, { type: 'delete', object }, itself, hasLabel('pool'))
    expect(queue.length).toBe(1)
    queue.close()
  })
})
