import { defineKind, type KubeObject } from '@corral/resources'
import { afterEach, describe, expect, it } from 'vitest'
import { inProcessKubeClient } from './client.js'
import { createInformer, type Informer } from './informer.js'
import { MemoryHandler } from './memory-handler.test-suite.js'

interface Thing extends KubeObject {
  spec?: { color?: string }
}
const things = defineKind<Thing>('example.org/v1', 'Thing', 'things')
const thing = (name: string, color = 'red'): Thing => ({
  apiVersion: 'example.org/v1',
  kind: 'Thing',
  metadata: { name, namespace: 'ns' },
  spec: { color },
})

const running: Informer<Thing>[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((informer) => informer.stop()))
})

function start(handler: MemoryHandler) {
  const client = inProcessKubeClient(handler)
  const informer = createInformer({
    client,
    kind: things,
    indexers: { color: (object) => [object.spec?.color ?? 'none'] },
  })
  running.push(informer)
  const seen: string[] = []
  informer.subscribe({
    add: (object) => seen.push(`+${object.metadata.name}`),
    update: (object, old) => seen.push(`~${object.metadata.name} ${old.spec?.color}>${object.spec?.color}`),
    delete: (object) => seen.push(`-${object.metadata.name}`),
  })
  return { client, informer, seen }
}

describe('createInformer', () => {
  it('holds what exists once it has synced and follows every change', async () => {
    const handler = new MemoryHandler()
    const { client, informer, seen } = start(handler)
    await client.create(things, thing('before'))
    await informer.hasSynced
    await client.create(things, thing('a'))
    await client.update(things, thing('a', 'blue'))
    await client.delete(things, { name: 'before', namespace: 'ns' })
    await expect.poll(() => seen).toEqual(['+before', '+a', '~a red>blue', '-before'])
    expect(informer.get('ns/a')?.spec?.color).toBe('blue')
    expect(informer.get({ namespace: 'ns', name: 'before' })).toBeUndefined()
    expect(informer.byIndex('color', 'blue').map((object) => object.metadata.name)).toEqual(['a'])
    expect(informer.byIndex('color', 'red')).toEqual([])
    expect(() => informer.byIndex('size', '1')).toThrow('no index "size"')
  })

  it('shares the server objects instead of copying them', async () => {
    const handler = new MemoryHandler()
    const { client, informer } = start(handler)
    await informer.hasSynced
    const created = await client.create(things, thing('a'))
    await expect.poll(() => informer.get('ns/a')).toBe(created)
  })

  it('reports to a late subscriber what is already there', async () => {
    const handler = new MemoryHandler()
    const { client, informer } = start(handler)
    await client.create(things, thing('a'))
    await expect.poll(() => informer.get('ns/a')).toBeDefined()
    const late: string[] = []
    informer.subscribe({ add: (object) => late.push(object.metadata.name) })
    expect(late).toEqual(['a'])
  })

  it('S2-I6: misses nothing over a dropped stream and a compacted history', async () => {
    const handler = new MemoryHandler()
    const { client, informer, seen } = start(handler)
    await client.create(things, thing('stays'))
    await client.create(things, thing('goes'))
    await informer.hasSynced
    await expect.poll(() => handler.watchers).toBe(1)
    handler.dropWatches()
    handler.remove('/apis/example.org/v1/namespaces/ns/things/goes')
    await client.create(things, thing('comes'))
    handler.compact()
    await expect.poll(() => seen.slice(2)).toEqual(['-goes', '+comes'])
    expect(informer.list().map((object) => object.metadata.name)).toEqual(['stays', 'comes'])
  })

  it('lets go of the stream when stopped, and says so to whoever waits for the sync', async () => {
    const handler = new MemoryHandler()
    const { informer } = start(handler)
    await informer.hasSynced
    await expect.poll(() => handler.watchers).toBe(1)
    await informer.stop()
    expect(handler.watchers).toBe(0)

    const aborted = createInformer({ client: inProcessKubeClient(handler), kind: things, signal: AbortSignal.abort() })
    await expect(aborted.hasSynced).rejects.toThrow('stopped before')
  })

  it('goes on when a handler throws', async () => {
    const handler = new MemoryHandler()
    const { client, informer, seen } = start(handler)
    informer.subscribe({
      add() {
        throw new Error('bad handler')
      },
    })
    await informer.hasSynced
    await client.create(things, thing('a'))
    await client.create(things, thing('b'))
    await expect.poll(() => seen).toEqual(['+a', '+b'])
  })
})
