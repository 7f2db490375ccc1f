import type { Sandbox, SandboxWarmPool, Stored } from '@corral/resources'
import type { ObjectEvent } from '@corral/runtime'
import { expect, it } from 'vitest'
import { watchPoolLevels } from './pool-levels.js'

type SandboxEvent = ObjectEvent<Stored<Sandbox>>

function levelsOf(replicas: number | undefined) {
  const handlers: ((event: SandboxEvent) => void)[] = []
  const pool = { metadata: { name: 'p', namespace: 'ns' }, spec: { replicas } } as Stored<SandboxWarmPool>
  const levels = watchPoolLevels(
    { onEvent: (handler) => void handlers.push(handler) },
    { get: (key) => (key === 'ns/p' ? pool : undefined) },
  )
  return { levels, tell: (event: SandboxEvent) => handlers.map((handle) => handle(event)) }
}

function member(name: string, isReady: boolean, owner = 'SandboxWarmPool'): Stored<Sandbox> {
  const apiVersion = 'extensions.agents.x-k8s.io/v1beta1'
  const reference = {
    apiVersion,
    kind: owner,
    name: owner === 'SandboxWarmPool' ? 'p' : 'c',
    uid: 'u',
    controller: true,
  }
  return {
    metadata: { name, namespace: 'ns', uid: name, resourceVersion: '1', ownerReferences: [reference] },
    spec: { podTemplate: { spec: { containers: [] } } },
    status: { conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
  } as unknown as Stored<Sandbox>
}
const added = (object: Stored<Sandbox>): SandboxEvent => ({ type: 'add', object, isInitial: false })

it('is low until a tenth of the members are Ready', () => {
  const { levels, tell } = levelsOf(20)
  tell(added(member('a', true)))
  tell(added(member('b', false)))
  expect(levels.isLow('ns/p')).toBe(true)
  tell({ type: 'update', old: member('b', false), object: member('b', true) })
  expect(levels.isLow('ns/p')).toBe(false)
})

it.each<[what: string, event: SandboxEvent]>([
  ['deleted', { type: 'delete', object: member('a', true) }],
  ['handed to a claim', { type: 'update', old: member('a', true), object: member('a', true, 'SandboxClaim') }],
  ['no longer Ready', { type: 'update', old: member('a', true), object: member('a', false) }],
])('is low again once its last Ready member is %s', (_what, event) => {
  const { levels, tell } = levelsOf(1)
  tell(added(member('a', true)))
  expect(levels.isLow('ns/p')).toBe(false)
  tell(event)
  expect(levels.isLow('ns/p')).toBe(true)
})

it('says of a pool that wants nothing, or is not there, that nobody waits for it', () => {
  expect(levelsOf(0).levels.isLow('ns/p')).toBe(false)
  expect(levelsOf(3).levels.isLow('ns/other')).toBe(false)
})
