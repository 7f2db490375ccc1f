import {
  nameHash,
  type Pod,
  type Sandbox,
  type SandboxTemplate,
  type SandboxWarmPool,
  type Stored,
} from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { templateHashes } from '../shared/blueprint.js'
import { labels } from '../shared/names.js'
import { withSecureDefaults } from '../shared/pod-spec-defaults.js'
import { classifyMembers, excessMembers, findStuck, type PoolWorld } from './members.js'
import { desiredReplicas, planScale, poolStatus, type ScaleAction, type ScaleWorld } from './plan.js'

const template = {
  metadata: { name: 't', namespace: 'n' },
  spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'new' }] } } },
} as unknown as Stored<SandboxTemplate>
const pool = (spec: object = {}): Stored<SandboxWarmPool> =>
  ({ metadata: { name: 'p', uid: 'pool', generation: 4 }, spec }) as unknown as Stored<SandboxWarmPool>
const owner = (uid: string) => ({
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxWarmPool',
  name: 'p',
  uid,
  controller: true,
})

interface Shape {
  owner?: string
  isReady?: boolean
  image?: string
  hash?: string
  templateName?: string
  launchType?: string
  createdAt?: string
  isGoing?: boolean
}
function member(name: string, shape: Shape = {}): Stored<Sandbox> {
  const { owner: uid = 'pool', image = 'new', templateName = 't', launchType = 'warm', isGoing } = shape
  const { hash = templateHashes(template).blueprint, createdAt = '2026-01-01T00:00:00Z' } = shape
  return {
    metadata: {
      name,
      namespace: 'n',
      uid: name,
      creationTimestamp: createdAt,
      labels: {
        [labels.templateRefHash]: nameHash(templateName),
        [labels.templateHash]: hash,
        [labels.launchType]: launchType,
      },
      ownerReferences: uid ? [owner(uid)] : [],
      ...(isGoing ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { podTemplate: { spec: withSecureDefaults(template, { containers: [{ name: 'main', image }] }) } },
    status: { conditions: [{ type: 'Ready', status: shape.isReady ? 'True' : 'False' }] },
  } as unknown as Stored<Sandbox>
}
const names = (list: readonly Stored<Sandbox>[]): string => list.map(({ metadata }) => metadata.name).join(' ')

function world(change: Partial<PoolWorld>): PoolWorld {
  return {
    pool: pool(),
    listed: [],
    template,
    isBeingDeleted: () => false,
    findPod: () => undefined,
    now: new Date('2026-01-01T00:05:00Z'),
    readinessGraceMs: 300_000,
    ...change,
  }
}

/** What each Sandbox counts as, in words: empty where the pool does nothing about it. */
function counts(change: Partial<PoolWorld>): string {
  const { active, terminatingCount, stale, unlabelled, orphans, staleOrphans } = classifyMembers(world(change))
  const lists = { active, stale, unlabelled, orphans, staleOrphans }
  const words = Object.entries(lists).flatMap(([what, list]) => (list.length > 0 ? [`${what}: ${names(list)}`] : []))
  return [...words, ...(terminatingCount > 0 ? [`going: ${terminatingCount}`] : [])].join('; ')
}

function inWords(action: ScaleAction): string {
  if (action.kind === 'hold') return `hold ${action.forMs}`
  if (action.kind === 'create') return `create ${action.count}`
  return action.kind === 'delete' ? `delete ${names(action.members)}` : 'rest'
}

const recreate = pool({ updateStrategy: { type: 'Recreate' } })
const old = { image: 'old', hash: 'old' }

describe('what a pool counts as its own', () => {
  it.each<{ when: string; listed: Stored<Sandbox>[]; world?: Partial<PoolWorld>; is: string }>([
    { when: 'it made them', listed: [member('a'), member('b')], is: 'active: a b' },
    { when: 'one is going', listed: [member('a'), member('b', { isGoing: true })], is: 'active: a; going: 1' },
    {
      when: 'it deleted one and the watch has not said so',
      listed: [member('a'), member('b')],
      world: { isBeingDeleted: (uid) => uid === 'b' },
      is: 'active: a; going: 1',
    },
    {
      when: 'one that is going belongs to another owner',
      listed: [member('a', { isGoing: true, owner: 'other' })],
      is: '',
    },
    { when: 'one that is going has no owner', listed: [member('a', { isGoing: true, owner: '' })], is: '' },
    { when: 'a claim took one', listed: [member('a', { owner: 'claim' })], is: '' },
    {
      when: 'another owner has one whose uid it deletes: it is not its own',
      listed: [member('a', { owner: 'claim' })],
      world: { isBeingDeleted: () => true },
      is: '',
    },
    { when: 'one does not say that it is warm', listed: [member('a', { launchType: '' })], is: 'unlabelled: a' },
    { when: 'one lost its owner: it is taken back', listed: [member('a', { owner: '' })], is: 'orphans: a' },
    {
      when: 'one lost its owner and runs something else, whatever its label says',
      listed: [member('a', { owner: '', image: 'old' })],
      is: 'staleOrphans: a',
    },
    {
      when: 'one lost its owner and the template cannot be read: it is taken back',
      listed: [member('a', { owner: '', image: 'old' })],
      world: { template: undefined },
      is: 'orphans: a',
    },
    { when: 'the template changed and members are replaced when used', listed: [member('a', old)], is: 'active: a' },
    {
      when: 'the template changed and members are recreated',
      listed: [member('a', old), member('b', old), member('c')],
      world: { pool: recreate },
      is: 'active: c; stale: a b',
    },
    {
      when: 'the hash changed and what runs did not',
      listed: [member('a', { hash: 'x' }), member('b', { hash: 'x' })],
      world: { pool: recreate },
      is: 'active: a b',
    },
    {
      when: 'members are recreated and one is of another template',
      listed: [member('a', { templateName: 'other' })],
      world: { pool: recreate },
      is: 'stale: a',
    },
    {
      when: 'members are recreated and the template cannot be read',
      listed: [member('a', old)],
      world: { pool: recreate, template: undefined },
      is: 'active: a',
    },
  ])('when $when', ({ listed, world: change, is }) => {
    expect(counts({ listed, ...change })).toBe(is)
  })

  it('compares members of one hash once', () => {
    const broken = member('b', { hash: 'x' })
    const listed = [member('a', { hash: 'x' }), { ...broken, spec: { podTemplate: {} } } as Stored<Sandbox>]
    expect(counts({ listed, pool: recreate })).toBe('active: a b')
  })

  it('takes a Sandbox without labels for old', () => {
    const bare = member('a')
    const { labels: _, ...metadata } = bare.metadata
    expect(counts({ listed: [{ ...bare, metadata } as Stored<Sandbox>], pool: recreate })).toBe('stale: a')
  })
})

describe('members that do not become Ready', () => {
  const held = (reason: string, more: object = {}): Stored<Pod> =>
    ({
      metadata: { name: 'x', ...more },
      status: { conditions: [{ type: 'PodScheduled', status: 'False', reason }] },
    }) as unknown as Stored<Pod>
  const late = '2025-12-31T23:59:59Z'

  it.each<{ when: string; active: Stored<Sandbox>[]; world?: Partial<PoolWorld>; is: object }>([
    { when: 'they are Ready', active: [member('a', { isReady: true, createdAt: late })], is: {} },
    { when: 'their time is up', active: [member('a', { createdAt: late })], is: { stuck: 'a' } },
    { when: 'their time is just not up', active: [member('a')], is: { nextDeadlineMs: 2_000 } },
    {
      when: 'two are on their way: the earlier deadline counts',
      active: [
        member('a', { createdAt: '2026-01-01T00:02:00Z' }),
        member('b', { createdAt: '2026-01-01T00:01:00Z' }),
        member('c', { createdAt: '2026-01-01T00:03:00Z' }),
      ],
      is: { nextDeadlineMs: 62_000 },
    },
    { when: 'their age is not known', active: [member('a', { createdAt: 'x' })], is: {} },
    {
      when: 'no node has room: another would not fit either',
      active: [member('a', { createdAt: late })],
      world: { findPod: () => held('Unschedulable') },
      is: { unschedulableCount: 1 },
    },
    {
      when: 'no node had room for a Pod that is going',
      active: [member('a', { createdAt: late })],
      world: { findPod: () => held('Unschedulable', { deletionTimestamp: 'x' }) },
      is: { stuck: 'a' },
    },
    {
      when: 'a gate holds them back',
      active: [member('a', { createdAt: late })],
      world: { findPod: () => held('SchedulingGated') },
      is: { stuck: 'a' },
    },
    {
      when: 'a gate holds them back and that is respected',
      active: [member('a', { createdAt: late })],
      world: { findPod: () => held('SchedulingGated'), sparesGated: true },
      is: {},
    },
    {
      when: 'gates are respected and there is none',
      active: [member('a', { createdAt: late })],
      world: { findPod: () => ({ metadata: {}, status: {} }) as Stored<Pod>, sparesGated: true },
      is: { stuck: 'a' },
    },
    {
      when: 'the Pod was scheduled after all',
      active: [member('a', { createdAt: late })],
      world: {
        findPod: () =>
          ({
            metadata: {},
            status: {
              conditions: [
                { type: 'Ready', status: 'False', reason: 'Unschedulable' },
                { type: 'PodScheduled', status: 'True', reason: 'Unschedulable' },
              ],
            },
          }) as unknown as Stored<Pod>,
      },
      is: { stuck: 'a' },
    },
  ])('when $when', ({ active, world: change = {}, is }) => {
    const { stuck, ...rest } = findStuck(active, world(change))
    expect({ stuck: names(stuck), ...rest }).toEqual({ stuck: '', unschedulableCount: 0, ...is })
  })
})

describe('the size of a pool', () => {
  const ready = member('ready', { isReady: true, createdAt: '2026-01-01T00:00:03Z' })
  const readyOld = member('readyOld', { isReady: true, createdAt: '2026-01-01T00:00:01Z' })
  const young = member('young', { createdAt: '2026-01-01T00:00:04Z' })
  const older = member('older', { createdAt: '2026-01-01T00:00:02Z' })
  const all = [ready, older, readyOld, young]

  it.each<{ when: string; world: Partial<ScaleWorld>; is: string }>([
    { when: 'it has what it asks for', world: { active: all }, is: 'rest' },
    { when: 'it is empty', world: {}, is: 'create 4' },
    { when: 'one is missing', world: { active: all.slice(1) }, is: 'create 1' },
    { when: 'more are missing than go in a batch', world: { batchSize: 3 }, is: 'create 3' },
    { when: 'those that go still have a place', world: { active: all.slice(1), terminatingCount: 1 }, is: 'rest' },
    { when: 'some places are free beside those that go', world: { terminatingCount: 1 }, is: 'create 3' },
    { when: 'there is no template', world: { hasTemplate: false }, is: 'rest' },
    { when: 'the refill waits', world: { holdMs: 7 }, is: 'hold 7' },
    { when: 'the refill waits and there is nothing to fill', world: { holdMs: 7, active: all }, is: 'rest' },
    { when: 'it asks for nothing', world: { pool: pool({ replicas: 0 }) }, is: 'rest' },
    { when: 'it asks for no number, which is one', world: { pool: pool() }, is: 'create 1' },
    {
      when: 'there are too many: first those that are not Ready, the youngest first',
      world: { active: all, pool: pool({ replicas: 1 }) },
      is: 'delete young older ready',
    },
    {
      when: 'there are too many and no template',
      world: { active: all, pool: pool({ replicas: 3 }), hasTemplate: false, holdMs: 7 },
      is: 'delete young',
    },
    {
      when: 'more are too many than go in a batch',
      world: { active: all, pool: pool({ replicas: 0 }), batchSize: 2 },
      is: 'delete young older',
    },
  ])('when $when', ({ world: change, is }) => {
    const action = planScale({
      pool: pool({ replicas: 4 }),
      active: [],
      terminatingCount: 0,
      hasTemplate: true,
      holdMs: 0,
      batchSize: 10,
      ...change,
    })
    expect(inWords(action)).toBe(is)
  })

  it('gives up as many as are asked for', () => {
    expect(names(excessMembers(all, 0))).toBe('')
    expect(names(excessMembers(all, 9))).toBe('young older ready readyOld')
  })

  it('is one where the pool names none', () => {
    expect([desiredReplicas(pool()), desiredReplicas(pool({ replicas: 0 }))]).toEqual([1, 0])
  })

  const selector = `${labels.warmPool}=${nameHash('p')}`
  it.each<{ when: string; pool: Stored<SandboxWarmPool>; active: Stored<Sandbox>[]; is: object }>([
    { when: 'it is empty', pool: pool(), active: [], is: { selector, observedGeneration: 4 } },
    { when: 'none is Ready', pool: pool(), active: [young], is: { replicas: 1, selector, observedGeneration: 4 } },
    {
      when: 'some are Ready and it has no generation',
      pool: { metadata: { name: 'p' }, spec: {} } as Stored<SandboxWarmPool>,
      active: all,
      is: { replicas: 4, readyReplicas: 2, selector, observedGeneration: 0 },
    },
  ])('is told when $when', ({ pool, active, is }) => {
    expect(poolStatus(pool, active)).toStrictEqual(is)
  })
})
