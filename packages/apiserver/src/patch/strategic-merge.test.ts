import { fieldTable } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { strategicMergePatch } from './index.js'

const POD = 'io.k8s.api.core.v1.Pod'
const DEPLOYMENT = 'io.k8s.api.apps.v1.Deployment'
const pod = {
  metadata: { finalizers: ['a', 'b'], labels: { app: 'x' } },
  spec: {
    containers: [
      { name: 'main', image: 'a:1', ports: [{ containerPort: 80, name: 'http' }], env: [{ name: 'A', value: '1' }] },
      { name: 'side', image: 'b:1' },
    ],
    tolerations: [{ key: 'k' }],
    volumes: [{ name: 'data', emptyDir: {} }],
  },
}

function mergeSpec(patch: object): { containers: { name: string }[]; [field: string]: unknown } {
  const merged = strategicMergePatch(pod, { spec: patch }, POD, fieldTable)
  return merged.spec as { containers: { name: string }[] }
}

describe('check 54: strategic merge by the rules of the type', () => {
  it('merges containers by name and their ports by number', () => {
    const { containers } = mergeSpec({ containers: [{ name: 'main', image: 'a:2', ports: [{ containerPort: 81 }] }] })
    expect(containers).toEqual([
      {
        name: 'main',
        image: 'a:2',
        ports: [{ containerPort: 81 }, { containerPort: 80, name: 'http' }],
        env: [{ name: 'A', value: '1' }],
      },
      { name: 'side', image: 'b:1' },
    ])
  })

  it.each<{ when: string; patch: object; names: string[] }>([
    { when: 'an item is new', patch: { containers: [{ name: 'new' }] }, names: ['new', 'main', 'side'] },
    {
      when: 'an item is new behind a known one',
      patch: { containers: [{ name: 'side' }, { name: 'new' }] },
      names: ['main', 'side', 'new'],
    },
    { when: 'an item is deleted', patch: { containers: [{ name: 'main', $patch: 'delete' }] }, names: ['side'] },
    {
      when: 'the list is replaced',
      patch: { containers: [{ $patch: 'replace' }, { name: 'only' }, { name: 'main', $patch: 'delete' }] },
      names: ['only'],
    },
    {
      when: 'an order is given',
      patch: {
        '$setElementOrder/containers': [{ name: 'new' }, { name: 'side' }, { name: 'main' }],
        containers: [{ name: 'new' }],
      },
      names: ['new', 'side', 'main'],
    },
    {
      when: 'an order does not know every item',
      patch: { '$setElementOrder/containers': [{ name: 'side' }, { name: 'new' }], containers: [{ name: 'new' }] },
      names: ['main', 'side', 'new'],
    },
    {
      when: 'an order stands alone',
      patch: { '$setElementOrder/containers': [{ name: 'side' }, { name: 'main' }] },
      names: ['side', 'main'],
    },
  ])('when $when', ({ patch, names }) => {
    expect(mergeSpec(patch).containers.map(({ name }) => name)).toEqual(names)
  })

  it('replaces lists that do not merge, and drops what is null', () => {
    expect(mergeSpec({ tolerations: [{ key: 'z' }], volumes: null })).toMatchObject({ tolerations: [{ key: 'z' }] })
    expect(mergeSpec({ volumes: null })).not.toHaveProperty('volumes')
  })

  it('merges lists of scalars as sets and deletes from them by value', () => {
    const merged = strategicMergePatch(
      pod,
      { metadata: { finalizers: ['c', 'a'], '$deleteFromPrimitiveList/finalizers': ['b'] } },
      POD,
      fieldTable,
    )
    expect(merged.metadata).toEqual({ finalizers: ['c', 'a'], labels: { app: 'x' } })
  })

  it('replaces a whole map when told to', () => {
    const merged = strategicMergePatch(pod, { metadata: { labels: { $patch: 'replace', z: '1' } } }, POD, fieldTable)
    expect(merged.metadata).toMatchObject({ labels: { z: '1' } })
  })

  it('keeps only the keys it is told to retain', () => {
    const live = { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } }
    const patch = { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } }
    expect(strategicMergePatch(live, patch, DEPLOYMENT, fieldTable)).toEqual({
      spec: { strategy: { type: 'Recreate' } },
    })
  })

  it('leaves no directive in what it creates', () => {
    const patch = {
      spec: {
        template: {
          spec: {
            '$setElementOrder/containers': [{ name: 'a' }],
            containers: [{ name: 'a', $patch: 'merge', env: null }],
          },
        },
      },
    }
    expect(strategicMergePatch({}, patch, DEPLOYMENT, fieldTable)).toEqual({
      spec: { template: { spec: { containers: [{ name: 'a' }] } } },
    })
  })

  it.each<{ when: string; patch: unknown; says: RegExp }>([
    { when: 'an item lacks its key', patch: { spec: { containers: [{ image: 'a' }] } }, says: /name/ },
    { when: 'a directive is unknown', patch: { spec: { $patch: 'explode' } }, says: /explode/ },
    { when: 'retained keys leave out what is set', patch: { spec: { $retainKeys: ['a'], b: 1 } }, says: /retainKeys/ },
    { when: 'an order is no list', patch: { spec: { '$setElementOrder/containers': 1 } }, says: /setElementOrder/ },
    { when: 'it is no object', patch: [], says: /object/ },
  ])('refuses a patch when $when', ({ patch, says }) => {
    const refused = expect.objectContaining({ status: 400, message: expect.stringMatching(says) })
    expect(() => strategicMergePatch(pod, patch, POD, fieldTable)).toThrow(refused)
  })
})
