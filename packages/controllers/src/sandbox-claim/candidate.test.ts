import type { Sandbox, SandboxClaim, SandboxTemplate, SandboxWarmPool, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { templateHashes } from '../shared/blueprint.js'
import { labels } from '../shared/names.js'
import { withSecureDefaults } from '../shared/pod-spec-defaults.js'
import { whyNotCandidate } from './adoptable.js'
import { type CandidateWorld, selectCandidate } from './candidate.js'

const claim = {
  metadata: { name: 'c', namespace: 'n', uid: 'claim' },
  spec: { warmPoolRef: { name: 'p' } },
} as Stored<SandboxClaim>
const template = {
  metadata: { name: 't', namespace: 'n' },
  spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'new' }] } } },
} as unknown as Stored<SandboxTemplate>
const pool = (type?: 'Recreate' | 'OnReplenish'): Stored<SandboxWarmPool> =>
  ({
    metadata: { name: 'p', namespace: 'n' },
    spec: { sandboxTemplateRef: { name: 't' }, ...(type ? { updateStrategy: { type } } : {}) },
  }) as unknown as Stored<SandboxWarmPool>

interface Member {
  isReady?: boolean
  hasAddress?: boolean
  isOld?: boolean
  nodeName?: string
  metadata?: object
}
const owner = {
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxWarmPool',
  name: 'p',
  uid: 'pool',
  controller: true,
}
function member(name: string, { isReady = true, hasAddress = true, isOld, nodeName, metadata }: Member = {}) {
  const image = isOld ? 'old' : 'new'
  const hash = isOld ? 'old' : templateHashes(template).blueprint
  return {
    metadata: {
      name,
      namespace: 'n',
      labels: { [labels.warmPool]: 'x', [labels.templateRefHash]: 'x', [labels.templateHash]: hash },
      ownerReferences: [owner],
      ...metadata,
    },
    spec: { podTemplate: { spec: withSecureDefaults(template, { containers: [{ name: 'main', image }] }) } },
    status: {
      ...(hasAddress ? { podIPs: ['10.0.0.1'] } : {}),
      ...(nodeName ? { nodeName } : {}),
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', reason: 'x', message: '' }],
    },
  } as unknown as Stored<Sandbox>
}

function select(members: Record<string, Stored<Sandbox>>, world: Partial<CandidateWorld> = {}) {
  const read: string[] = []
  function* offers() {
    for (const key of Object.keys(members)) {
      read.push(key)
      yield { key, nodeName: '' }
    }
  }
  const selection = selectCandidate({
    claim,
    offers: offers(),
    aside: [],
    findSandbox: (key) => members[key],
    findPod: () => undefined,
    findPool: () => pool(),
    findTemplate: () => template,
    ...world,
  })
  const keys = (items: readonly { key: string }[]): string => items.map(({ key }) => key).join(' ')
  return {
    read: read.join(' '),
    chosen: selection.chosen?.item.key,
    putBack: keys(selection.putBack),
    setAside: keys(selection.setAside),
    arePending: selection.arePending,
  }
}
/** Every member's Pod; only those of the named ones have an address. */
const podsWithAddress =
  (...names: string[]): CandidateWorld['findPod'] =>
  ({ metadata: { name, uid } }) => ({
    metadata: {
      name,
      ownerReferences: [{ apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', name, uid, controller: true }],
    },
    status: { phase: 'Running', ...(names.includes(name) ? { podIPs: [{ ip: '10.0.0.1' }] } : {}) },
  })
const stored = (name: string): Stored<Sandbox> => member(name, { metadata: { uid: name } })
const ready = member('ready')
const starting = member('starting', { isReady: false })
const bare = member('bare', { hasAddress: false, isReady: false })
const old = member('old', { isOld: true })

describe('the warm sandbox a claim gets', () => {
  it.each<{
    when: string
    members: Record<string, Stored<Sandbox>>
    world?: Partial<CandidateWorld>
    is: Partial<ReturnType<typeof select>>
  }>([
    {
      when: 'the first is ready: no other is looked at',
      members: { a: ready, b: ready },
      is: { chosen: 'a', read: 'a' },
    },
    {
      when: 'a later one is ready: those before it stay for other claims',
      members: { a: starting, b: starting, c: ready, d: ready },
      is: { chosen: 'c', read: 'a b c', putBack: 'b a' },
    },
    {
      when: 'none is ready: the first with an address',
      members: { a: bare, b: starting, c: starting },
      is: { chosen: 'b', putBack: 'c', setAside: 'a' },
    },
    {
      when: 'all lack an address: they are waited for',
      members: { a: bare, b: bare },
      is: { chosen: undefined, setAside: 'a b', arePending: true },
    },
    {
      when: 'one without an address was set aside before',
      members: {},
      world: { aside: [{ key: 'z', nodeName: '' }], findSandbox: () => bare },
      is: { chosen: undefined, arePending: true },
    },
    {
      when: 'those set aside are gone: nothing is waited for',
      members: {},
      world: { aside: [{ key: 'z', nodeName: '' }] },
      is: { chosen: undefined, arePending: false },
    },
    {
      when: 'the one set aside is of an old template of a pool that recreates its members',
      members: {},
      world: { aside: [{ key: 'z', nodeName: '' }], findSandbox: () => old, findPool: () => pool('Recreate') },
      is: { arePending: false },
    },
    {
      when: 'the Pod of the first has lost what ran in it, and its Sandbox does not say so yet',
      members: { a: stored('a'), b: stored('b') },
      world: { findPod: podsWithAddress('b') },
      is: { chosen: 'b', putBack: 'a', setAside: '' },
    },
    {
      when: 'all Pods have lost what ran in them: they are waited for',
      members: { a: stored('a') },
      world: { findPod: podsWithAddress() },
      is: { chosen: undefined, putBack: 'a', arePending: true },
    },
    {
      when: 'members that are gone are neither put back nor set aside',
      members: { a: member('a', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }) },
      is: { read: 'a', chosen: undefined, putBack: '', setAside: '', arePending: false },
    },
    {
      when: 'the pool recreates its members: an old one serves no claim',
      members: { a: old, b: ready },
      world: { findPool: () => pool('Recreate') },
      is: { chosen: 'b', putBack: '' },
    },
    {
      when: 'the pool replaces old members when they are used: they serve',
      members: { a: old },
      world: { findPool: () => pool('OnReplenish') },
      is: { chosen: 'a' },
    },
    {
      when: 'the label is old and what runs is not: it serves',
      members: { a: member('a', { metadata: { labels: { ...ready.metadata.labels, [labels.templateHash]: 'x' } } }) },
      world: { findPool: () => pool('Recreate') },
      is: { chosen: 'a' },
    },
    {
      when: 'the pool cannot be read: none is chosen and none is lost',
      members: { a: ready },
      world: { findPool: () => undefined },
      is: { chosen: undefined, putBack: 'a', arePending: false },
    },
    {
      when: 'the template cannot be read',
      members: { a: ready },
      world: { findPool: () => pool('Recreate'), findTemplate: () => undefined },
      is: { chosen: undefined, putBack: 'a' },
    },
  ])('when $when', ({ members, world, is }) => {
    expect(select(members, world)).toMatchObject(is)
  })

  it.each([
    { when: 'it has one', nodeName: 'n1', is: 'n1' },
    { when: 'its status names none', nodeName: '', is: 'n0' },
  ])('what stays for other claims is known by its node when $when', ({ nodeName, is }) => {
    const world = {
      claim,
      aside: [],
      findTemplate: () => template,
      findPod: () => undefined,
      offers: [{ key: 'a', nodeName: 'n0' }],
    }
    const bare = member('a', { hasAddress: false, nodeName })
    const aside = selectCandidate({ ...world, findSandbox: () => bare, findPool: () => pool() })
    expect(aside.setAside).toEqual([{ key: 'a', nodeName: is }])
    const put = selectCandidate({ ...world, findSandbox: () => member('a', { nodeName }), findPool: () => undefined })
    expect(put.putBack).toEqual([{ key: 'a', nodeName: is }])
  })
})

describe('a Sandbox serves no claim of another owner', () => {
  it.each([
    { when: 'it can be adopted', metadata: {}, why: undefined },
    {
      when: 'it is in another namespace',
      metadata: { namespace: 'm' },
      why: 'cross-namespace adoption forbidden: sandbox is in "m", claim is in "n"',
    },
    { when: 'it is deleted', metadata: { deletionTimestamp: 'x' }, why: 'sandbox is deleted' },
    {
      when: 'it carries no label of a pool',
      metadata: { labels: {} },
      why: 'sandbox is missing the warm pool sandbox label',
    },
    {
      when: 'it carries no label of a template',
      metadata: { labels: { [labels.warmPool]: 'x' } },
      why: 'sandbox is missing the sandbox template ref hash label',
    },
    {
      when: 'it has no owner',
      metadata: { ownerReferences: [] },
      why: 'sandbox n/a is unowned and cannot be safely adopted',
    },
    {
      when: 'a claim has it',
      metadata: { ownerReferences: [{ ...owner, kind: 'SandboxClaim', name: 'other' }] },
      why: 'sandbox n/a is not managed by warm pool. Controller: SandboxClaim/other',
    },
    {
      when: 'it is of another pool',
      metadata: { ownerReferences: [{ ...owner, name: 'q' }] },
      why: 'incorrect warm pool, expected p',
    },
  ])('when $when: $why', ({ metadata, why }) => {
    expect(whyNotCandidate(member('a', { metadata }), claim)).toBe(why)
  })
})
