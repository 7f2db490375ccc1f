import { KubeError } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { clusterView } from './cluster-view.js'

type Client = Parameters<typeof clusterView>[0]
const at = (second: number): string => `2026-01-01T00:00:0${second}Z`
const condition = (type: string, status: string, reason = 'Why', message = 'because') => ({
  type,
  status,
  reason,
  message,
})
const object = (name: string, more: object = {}, metadata: object = {}) => ({
  metadata: { name, creationTimestamp: at(1), ...metadata },
  spec: {},
  ...more,
})

/** A cluster with these objects, by kind. */
function cluster(objects: Record<string, object[]>) {
  const asked: unknown[] = []
  const client = {
    list: async ({ kind }: { kind: string }, options: object) => {
      asked.push([kind, options])
      return { items: objects[kind] ?? [] }
    },
    get: async ({ kind }: { kind: string }, key: { name: string }) => {
      asked.push([kind, key])
      const found = objects[kind]?.find((each) => (each as { metadata: { name: string } }).metadata.name === key.name)
      if (!found) throw new KubeError('NotFound', 'no', { status: 404 })
      return found
    },
    patch: async ({ kind }: { kind: string }, key: { name: string }, patch: object) => {
      asked.push([kind, key, patch])
      if (key.name === 'away') throw new KubeError('ServiceUnavailable', 'away', { status: 503 })
      if (key.name !== 'default') throw new KubeError('NotFound', 'no', { status: 404 })
      return object('default', { spec: { replicas: 5, sandboxTemplateRef: { name: 't' } } })
    },
  } as unknown as Client
  return { view: clusterView(client, 'corral', 'corral.dev/task'), asked }
}

describe('sandboxes, as the page lists them', () => {
  const ready = { status: { conditions: [condition('Ready', 'True')] } }
  it.each<{ what: string; sandbox: object; shows: object }>([
    { what: 'one that is ready', sandbox: object('a', ready), shows: { state: 'ready' } },
    {
      what: 'one on its way, with why',
      sandbox: object('a', { status: { conditions: [condition('Ready', 'False', 'Pulling', 'an image')] } }),
      shows: { state: 'waiting', reason: 'Pulling', message: 'an image' },
    },
    { what: 'one without a word', sandbox: object('a'), shows: { state: 'waiting' } },
    {
      what: 'one that has ended',
      sandbox: object('a', { status: { conditions: [condition('Finished', 'True')] } }),
      shows: { state: 'failed' },
    },
    {
      what: 'one that is suspended',
      sandbox: object('a', { ...ready, spec: { operatingMode: 'Suspended' } }),
      shows: { state: 'suspended' },
    },
    {
      what: 'one of a pool, with a runtime class',
      sandbox: object(
        'a',
        { ...ready, spec: { podTemplate: { spec: { runtimeClassName: 'kata' } } } },
        {
          ownerReferences: [
            { kind: 'Other', name: 'x' },
            { kind: 'SandboxWarmPool', name: 'default' },
          ],
        },
      ),
      shows: { state: 'ready', pool: 'default', runtime_class: 'kata' },
    },
  ])('$what', async ({ sandbox, shows }) => {
    expect(await cluster({ Sandbox: [sandbox] }).view.sandboxes()).toEqual([{ name: 'a', created_at: at(1), ...shows }])
  })

  it('have the claim, task, pod, node and addresses they belong to, the newest first', async () => {
    const { view, asked } = cluster({
      Sandbox: [object('b', ready), object('a', ready), object('new', ready, { creationTimestamp: at(2) })],
      SandboxClaim: [
        object('claim-1', { status: { sandbox: { name: 'a' } } }, { labels: { 'corral.dev/task': 'task-b' } }),
        object('claim-2', { status: { sandbox: { name: 'b' } } }),
      ],
      Pod: [object('a', { spec: { nodeName: 'n' }, status: { podIPs: [{ ip: '10.0.0.1' }, {}] } }), object('b')],
    })
    expect(await view.sandboxes()).toEqual([
      { name: 'new', state: 'ready', created_at: at(2) },
      {
        ...{ name: 'a', state: 'ready', created_at: at(1), claim: 'claim-1', task: 'task-b', pod: 'a', node: 'n' },
        addresses: ['10.0.0.1'],
      },
      { name: 'b', state: 'ready', created_at: at(1), claim: 'claim-2', pod: 'b' },
    ])
    expect(asked).toEqual(['Sandbox', 'SandboxClaim', 'Pod'].map((kind) => [kind, { namespace: 'corral' }]))
  })
})

describe('pools', () => {
  const pool = (name: string, more: object = {}) =>
    object(name, { spec: { sandboxTemplateRef: { name: 't' } }, ...more })
  it('are listed by name, with what is ready of what was asked for', async () => {
    const { view, asked } = cluster({
      SandboxWarmPool: [
        pool('b', { spec: { replicas: 3, sandboxTemplateRef: { name: 't' } }, status: { readyReplicas: 2 } }),
        pool('a'),
      ],
    })
    expect(await view.pools()).toEqual([
      { name: 'a', template: 't', replicas: 1, ready: 0, created_at: at(1) },
      { name: 'b', template: 't', replicas: 3, ready: 2, created_at: at(1) },
    ])
    expect(asked).toEqual([['SandboxWarmPool', { namespace: 'corral' }]])
  })

  it('are resized by what changes alone; one that is not there is named', async () => {
    const { view, asked } = cluster({})
    expect(await view.resizePool('default', 5)).toMatchObject({ name: 'default', replicas: 5 })
    expect(asked).toEqual([
      ['SandboxWarmPool', { namespace: 'corral', name: 'default' }, { type: 'merge', body: { spec: { replicas: 5 } } }],
    ])
    await expect(view.resizePool('none', 5)).rejects.toMatchObject({
      code: 'NotFound',
      message: 'there is no pool "none"',
    })
    await expect(view.resizePool('away', 5)).rejects.toMatchObject({ code: 'ServiceUnavailable', message: 'away' })
  })
})

describe('an object', () => {
  const event = (more: object) => ({ metadata: { name: 'e' }, involvedObject: { kind: 'Pod' }, ...more })
  it('is its YAML without managed fields, and its events, the latest first', async () => {
    const { view, asked } = cluster({
      Pod: [{ kind: 'Pod', ...object('x', {}, { managedFields: [{ manager: 'me' }] }) }],
      Event: [
        event({ type: 'Warning', reason: 'Old', message: 'm', count: 3, firstTimestamp: at(1) }),
        event({ reason: 'New', lastTimestamp: at(3), eventTime: at(1), series: { count: 7 } }),
        event({ eventTime: at(2) }),
        event({ involvedObject: { kind: 'Sandbox' }, reason: 'Other' }),
        event({ involvedObject: {}, reason: 'Other' }),
      ],
    })
    const shown = await view.object('pod', 'x')
    expect(shown).toMatchObject({ kind: 'Pod', name: 'x', namespace: 'corral' })
    expect(shown.yaml).toBe(`kind: Pod\nmetadata:\n  name: x\n  creationTimestamp: '${at(1)}'\nspec: {}\n`)
    expect(shown.events).toEqual([
      { type: 'Normal', reason: 'New', message: '', count: 7, last_seen: at(3) },
      { type: 'Normal', reason: '', message: '', count: 1, last_seen: at(2) },
      { type: 'Warning', reason: 'Old', message: 'm', count: 3, last_seen: at(1) },
    ])
    expect(asked).toEqual([
      ['Pod', { namespace: 'corral', name: 'x' }],
      ['Event', { namespace: 'corral', fieldSelector: 'involvedObject.name=x' }],
    ])
  })

  it.each([
    ['agenttask', 'AgentTask'],
    ['project', 'Project'],
    ['sandbox', 'Sandbox'],
    ['sandboxclaim', 'SandboxClaim'],
    ['sandboxwarmpool', 'SandboxWarmPool'],
    ['sandboxtemplate', 'SandboxTemplate'],
    ['pod', 'Pod'],
  ] as const)('of kind %s is a %s, and one that is not there is named', async (kind, name) => {
    expect(await cluster({ [name]: [object('x')] }).view.object(kind, 'x')).toMatchObject({ kind, events: [] })
    await expect(cluster({}).view.object(kind, 'x')).rejects.toMatchObject({
      ...{ code: 'NotFound', message: `there is no ${kind} "x"` },
    })
  })
})
