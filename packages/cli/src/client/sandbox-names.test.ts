import type { Sandbox, SandboxClaim, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { sandboxRows } from './sandbox-names.js'

const created = '2026-01-01T00:00:00Z'
const ready = [{ type: 'Ready', status: 'True' as const, reason: 'Ready', message: '', lastTransitionTime: created }]
const owned = (kind: string, name: string): object => ({
  ownerReferences: [{ apiVersion: 'x/v1', kind, name, uid: `${kind}-${name}`, controller: true }],
})
const sandbox = (name: string, more: object = {}): Stored<Sandbox> =>
  ({
    metadata: { name, namespace: 'corral', uid: name, resourceVersion: '1', creationTimestamp: created, ...more },
    spec: { podTemplate: { spec: { containers: [] } } },
    status: { conditions: ready },
  }) as unknown as Stored<Sandbox>
const claim = (name: string, sandboxName: string | undefined, more: object = {}): Stored<SandboxClaim> =>
  ({
    metadata: { name, namespace: 'corral', uid: name, resourceVersion: '1', creationTimestamp: created, ...more },
    spec: { warmPoolRef: { name: 'default' } },
    status: sandboxName ? { sandbox: { name: sandboxName }, conditions: ready } : {},
  }) as unknown as Stored<SandboxClaim>

describe('a sandbox is listed by the name its user gave, with whose it is', () => {
  it.each([
    {
      when: 'a user claimed it',
      sandboxes: [sandbox('default-abc', owned('SandboxClaim', 'box'))],
      claims: [claim('box', 'default-abc')],
      row: { name: 'box', owner: 'claim box', sandbox: 'default-abc', ready: 'True' },
    },
    {
      when: 'a task claimed it',
      sandboxes: [sandbox('default-abc', owned('SandboxClaim', 'task-1'))],
      claims: [claim('task-1', 'default-abc', owned('AgentTask', 'task-1'))],
      row: { name: 'task-1', owner: 'task task-1', sandbox: 'default-abc' },
    },
    {
      when: 'it waits in a pool',
      sandboxes: [sandbox('default-abc', owned('SandboxWarmPool', 'default'))],
      claims: [],
      row: { name: 'default-abc', owner: 'pool default', sandbox: 'default-abc' },
    },
    {
      when: 'somebody made it by hand',
      sandboxes: [sandbox('mine')],
      claims: [],
      row: { name: 'mine', owner: '', sandbox: 'mine' },
    },
    {
      when: 'a claim still waits for one',
      sandboxes: [],
      claims: [claim('box', undefined)],
      row: { name: 'box', owner: 'claim box', sandbox: null, ready: 'Unknown' },
    },
  ])('when $when', ({ sandboxes, claims, row }) => {
    expect(sandboxRows(sandboxes, claims)).toEqual([expect.objectContaining(row)])
  })
})
