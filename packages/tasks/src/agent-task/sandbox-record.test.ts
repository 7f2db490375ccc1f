import type { AgentTask, SandboxClaim, Stored } from '@corral/resources'
import { expect, it } from 'vitest'
import { sandboxRecord } from './sandbox-record.js'

type World = Parameters<typeof sandboxRecord>[0]
const task = (spec: object = {}): World['task'] => ({ metadata: { name: 'fix' }, spec }) as Stored<AgentTask>
const claim = (name: string, sandbox?: string): World['claim'] =>
  ({ metadata: { name }, spec: {}, status: sandbox ? { sandbox: { name: sandbox } } : {} }) as Stored<SandboxClaim>

it.each<{ when: string; world: Partial<World>; says: object }>([
  {
    when: 'the sandbox came from a warm pool, whose pod has another name',
    world: { claim: claim('fix', 's-1'), podName: 'p-1' },
    says: { sandbox: { claimName: 'fix', sandboxName: 's-1', podName: 'p-1' } },
  },
  {
    when: 'the claim names no sandbox yet',
    world: { claim: claim('fix') },
    says: { sandbox: { claimName: 'fix' } },
  },
  {
    when: 'it was taken over from the former task',
    world: { task: task({ continues: { task: 'first' } }), claim: claim('first-claim', 's-1') },
    says: { sandbox: { claimName: 'first-claim', takenFrom: 'first', sandboxName: 's-1' } },
  },
  {
    when: 'it was taken over and the former task is not named',
    world: { claim: claim('first-claim') },
    says: { sandbox: { claimName: 'first-claim', takenFrom: 'first-claim' } },
  },
  {
    when: 'tier, provider and egress are known',
    world: { task: task({ egress: ['example.com:443'] }), isolation: 'bubblewrap', provider: 'other' },
    says: {
      sandbox: { claimName: 'fix', isolation: 'bubblewrap', provider: 'other' },
      egress: ['example.com:443'],
    },
  },
])('when $when, the status says so', ({ world, says }) => {
  const none = { podName: undefined, isolation: undefined, provider: undefined }
  expect(sandboxRecord({ task: task(), claim: claim('fix'), ...none, ...world })).toEqual(says)
})
