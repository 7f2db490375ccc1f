import type { AgentTask, Condition, SandboxClaim, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { planTask, type TaskWorld, taskFinalizer } from './plan.js'
import { phaseOf, type StageCondition } from './stages.js'

const t0 = new Date('2026-01-01T00:00:00Z')
const at = (seconds: number): Date => new Date(t0.getTime() + seconds * 1000)

function condition(type: string, status: 'True' | 'False' = 'True', reason = 'Done', message = ''): Condition {
  return { type, status, reason, message, lastTransitionTime: '2026-01-01T00:00:00Z' }
}

interface TaskShape {
  passed?: StageCondition[]
  also?: Condition[]
  spec?: Partial<AgentTask['spec']>
  status?: Partial<NonNullable<AgentTask['status']>>
  deleting?: boolean
  finalizers?: string[]
}

function task({
  passed = [],
  also = [],
  spec = {},
  status = {},
  deleting,
  finalizers = [taskFinalizer],
}: TaskShape = {}): Stored<AgentTask> {
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      name: 'task-a',
      namespace: 'corral',
      uid: 'uid-a',
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers,
      ...(deleting ? { deletionTimestamp: '2026-01-01T00:00:05Z' } : {}),
    },
    spec: {
      repository: { url: '/repo' },
      prompt: 'do it',
      agent: { name: 'command', command: 'true' },
      timeoutSeconds: 60,
      ...spec,
    },
    status: { conditions: [...passed.map((type) => condition(type)), ...also], ...status },
  }
}

function claim(ready?: Condition): Stored<SandboxClaim> {
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxClaim',
    metadata: {
      name: 'task-a',
      namespace: 'corral',
      uid: 'c',
      resourceVersion: '2',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { warmPoolRef: { name: 'default' } },
    status: { conditions: ready ? [ready] : [], sandbox: { name: 'sandbox-1' } },
  }
}

const readyClaim = claim(condition('Ready'))
const toSandbox: StageCondition[] = ['Admitted', 'SandboxReady']
const toAgent: StageCondition[] = [...toSandbox, 'RepositoryReady', 'SetupDone', 'AgentStarted']
const toEnd: StageCondition[] = [...toAgent, 'AgentFinished']

function does(world: Partial<TaskWorld>): string[] {
  const plan = planTask({
    task: task(),
    claim: undefined,
    step: undefined,
    mayStart: true,
    stopping: false,
    now: at(1),
    ...world,
  })
  return plan.actions.map((action) => {
    if (action.kind === 'runStep') return `run ${action.step}${action.reason ? ` (${action.reason})` : ''}`
    if (action.kind === 'record') return `record ${action.condition}`
    return action.kind === 'finish' ? `finish ${action.ending.code}` : action.kind
  })
}

describe('what a task needs next', () => {
  it.each<{ when: string; world: Partial<TaskWorld>; does: string[] }>([
    { when: 'it is new and has no finalizer', world: { task: task({ finalizers: [] }) }, does: ['addFinalizer'] },
    { when: 'a place is free', world: {}, does: ['record Admitted'] },
    { when: 'NFR-2: all places are taken', world: { mayStart: false }, does: [] },
    {
      when: 'it waits and is cancelled',
      world: { mayStart: false, task: task({ spec: { cancelRequested: true } }) },
      does: ['finish Cancelled'],
    },
    { when: 'it waits and the platform stops', world: { stopping: true }, does: [] },
    { when: 'FR-1: it is admitted', world: { task: task({ passed: ['Admitted'] }) }, does: ['createClaim'] },
    {
      when: 'the claim is not ready yet',
      world: { task: task({ passed: ['Admitted'] }), claim: claim(condition('Ready', 'False', 'SandboxNotReady')) },
      does: [],
    },
    {
      when: 'the claim names a pool that is not there',
      world: { task: task({ passed: ['Admitted'] }), claim: claim(condition('Ready', 'False', 'WarmPoolNotFound')) },
      does: ['finish PoolNotFound'],
    },
    {
      when: 'the claim is refused for its metadata',
      world: { task: task({ passed: ['Admitted'] }), claim: claim(condition('Ready', 'False', 'InvalidMetadata')) },
      does: ['finish ClaimFailed'],
    },
    {
      when: 'no sandbox came within five minutes',
      world: {
        task: task({ passed: ['Admitted'] }),
        claim: claim(condition('Ready', 'False', 'SandboxNotReady')),
        now: at(301),
      },
      does: ['finish SandboxNotReady'],
    },
    {
      when: 'the sandbox is ready',
      world: { task: task({ passed: ['Admitted'] }), claim: readyClaim },
      does: ['record SandboxReady'],
    },
    {
      when: 'FR-3: the sandbox is recorded',
      world: { task: task({ passed: toSandbox }), claim: readyClaim },
      does: ['run repository'],
    },
    {
      when: 'the repository step runs already',
      world: { task: task({ passed: toSandbox }), claim: readyClaim, step: { name: 'repository', running: true } },
      does: [],
    },
    {
      when: 'the repository is in',
      world: { task: task({ passed: [...toSandbox, 'RepositoryReady'] }), claim: readyClaim },
      does: ['run setup'],
    },
    {
      when: 'FR-5: set-up is done',
      world: { task: task({ passed: [...toSandbox, 'RepositoryReady', 'SetupDone'] }), claim: readyClaim },
      does: ['run start-agent'],
    },
    {
      when: 'the repository could not be read',
      world: {
        task: task({ passed: toSandbox, also: [condition('RepositoryReady', 'False', 'RepositoryNotFound')] }),
        claim: readyClaim,
      },
      does: ['finish RepositoryNotFound'],
    },
    {
      when: 'the agent runs',
      world: { task: task({ passed: toAgent }), claim: readyClaim },
      does: ['run follow-agent'],
    },
    {
      when: 'the agent runs and is cancelled',
      world: {
        task: task({ passed: toAgent, spec: { cancelRequested: true } }),
        claim: readyClaim,
        step: { name: 'follow-agent', running: true },
      },
      does: ['abortStep', 'run stop-agent (Cancelled)'],
    },
    {
      when: 'FR-10: the agent is out of time',
      world: {
        task: task({ passed: toAgent }),
        claim: readyClaim,
        now: at(60),
        step: { name: 'follow-agent', running: true },
      },
      does: ['abortStep', 'run stop-agent (Timeout)'],
    },
    {
      when: 'the agent is being stopped',
      world: {
        task: task({ passed: toAgent }),
        claim: readyClaim,
        now: at(61),
        step: { name: 'stop-agent', running: true },
      },
      does: [],
    },
    {
      when: 'the platform stops while the agent runs',
      world: { task: task({ passed: toAgent }), claim: readyClaim, stopping: true },
      does: ['run stop-agent (PlatformStopped)'],
    },
    {
      when: 'the sandbox dies under the agent',
      world: { task: task({ passed: toAgent }), claim: claim(condition('Ready', 'False', 'PodFailed')) },
      does: ['finish SandboxLost'],
    },
    {
      when: 'the sandbox is away for a moment',
      world: {
        task: task({ passed: toAgent }),
        claim: claim(condition('Ready', 'False', 'DependenciesNotReady')),
        now: at(10),
      },
      does: ['run follow-agent'],
    },
    {
      when: 'the sandbox stays away',
      world: {
        task: task({ passed: toAgent }),
        claim: claim(condition('Ready', 'False', 'DependenciesNotReady')),
        now: at(31),
      },
      does: ['finish SandboxLost'],
    },
    {
      when: 'the claim vanished under the agent',
      world: { task: task({ passed: toAgent }) },
      does: ['finish SandboxLost'],
    },
    {
      when: 'FR-6: the agent ended',
      world: { task: task({ passed: toEnd }), claim: readyClaim },
      does: ['run collect'],
    },
    {
      when: 'the agent timed out, its work is still collected',
      world: {
        task: task({ passed: toAgent, also: [condition('AgentFinished', 'True', 'Timeout')] }),
        claim: readyClaim,
        now: at(70),
      },
      does: ['run collect'],
    },
    {
      when: 'FR-7: the result is accepted',
      world: {
        task: task({ passed: [...toEnd, 'ResultCollected'], status: { outcome: 'changes' } }),
        claim: readyClaim,
      },
      does: ['run push'],
    },
    {
      when: 'nothing changed',
      world: {
        task: task({
          passed: [...toAgent, 'ResultCollected'],
          also: [condition('AgentFinished', 'True', 'Completed')],
          status: { outcome: 'no_changes' },
        }),
        claim: readyClaim,
      },
      does: ['finish Succeeded'],
    },
    {
      when: 'the branch is pushed',
      world: {
        task: task({
          passed: [...toAgent, 'ResultCollected', 'Pushed'],
          also: [condition('AgentFinished', 'True', 'Completed')],
          status: { outcome: 'changes' },
        }),
        claim: readyClaim,
      },
      does: ['finish Succeeded'],
    },
    {
      when: 'the agent failed and its work is pushed',
      world: {
        task: task({
          passed: [...toAgent, 'ResultCollected', 'Pushed'],
          also: [condition('AgentFinished', 'True', 'AgentFailed')],
          status: { outcome: 'changes' },
        }),
        claim: readyClaim,
      },
      does: ['finish AgentFailed'],
    },
    {
      when: 'the push was refused',
      world: {
        task: task({
          passed: [...toAgent, 'ResultCollected'],
          also: [condition('AgentFinished', 'True', 'Completed'), condition('Pushed', 'False', 'PushRefused')],
          status: { outcome: 'changes' },
        }),
        claim: readyClaim,
      },
      does: ['finish PushRefused'],
    },
    {
      when: 'the agent timed out and the result was rejected',
      world: {
        task: task({
          passed: toAgent,
          also: [
            condition('AgentFinished', 'True', 'Timeout'),
            condition('ResultCollected', 'False', 'ResultRejected'),
          ],
        }),
        claim: readyClaim,
      },
      does: ['finish Timeout'],
    },
    {
      when: 'S1-F4c S1-K2: the end is recorded',
      world: { task: task({ passed: toEnd, also: [condition('Succeeded')] }), claim: readyClaim },
      does: ['deleteClaim'],
    },
    {
      when: 'a failed one is to be kept',
      world: {
        task: task({
          passed: toEnd,
          spec: { keepSandbox: true },
          also: [condition('Succeeded', 'False', 'AgentFailed')],
        }),
        claim: readyClaim,
      },
      does: [],
    },
    {
      when: 'a kept one is deleted',
      world: {
        task: task({
          passed: toEnd,
          deleting: true,
          spec: { keepSandbox: true },
          also: [condition('Succeeded', 'False', 'AgentFailed')],
        }),
        claim: readyClaim,
      },
      does: ['deleteClaim'],
    },
    {
      when: 'it ended and nothing is left',
      world: { task: task({ passed: toEnd, also: [condition('Succeeded')] }) },
      does: [],
    },
    {
      when: 'it is deleted while the agent runs',
      world: { task: task({ passed: toAgent, deleting: true }), claim: readyClaim },
      does: ['run stop-agent (Cancelled)'],
    },
    {
      when: 'it is deleted, ended and cleaned up',
      world: { task: task({ passed: toEnd, deleting: true, also: [condition('Succeeded')] }) },
      does: ['removeFinalizer'],
    },
  ])('when $when', ({ world, does: expected }) => {
    expect(does(world)).toEqual(expected)
  })

  it('NFR-3: without a timeout of its own an agent has thirty minutes', () => {
    const shape = task({ passed: toAgent })
    const { timeoutSeconds: _, ...spec } = shape.spec
    expect(does({ task: { ...shape, spec }, claim: readyClaim, now: at(1799) })).toEqual(['run follow-agent'])
    expect(does({ task: { ...shape, spec }, claim: readyClaim, now: at(1800) })).toEqual(['run stop-agent (Timeout)'])
  })
})

describe('S4-A4 S4-P2.3: the phase follows from the conditions', () => {
  it.each<[string, TaskShape, string]>([
    ['nothing happened yet', {}, 'QUEUED'],
    ['it is admitted', { passed: ['Admitted'] }, 'PROVISIONING'],
    ['the agent was started', { passed: toAgent }, 'RUNNING'],
    ['it went well', { passed: toEnd, also: [condition('Succeeded')] }, 'SUCCEEDED'],
    ['something failed', { passed: toEnd, also: [condition('Succeeded', 'False', 'PushRefused')] }, 'FAILED'],
    ['its time was over', { passed: toEnd, also: [condition('Succeeded', 'False', 'Timeout')] }, 'TIMED_OUT'],
    ['it was cancelled', { also: [condition('Succeeded', 'False', 'Cancelled')] }, 'CANCELLED'],
  ])('when %s', (_, shape, phase) => {
    expect(phaseOf(task(shape))).toBe(phase)
  })
})
