import { describe, expect, it } from 'vitest'
import { phaseOf, type StageCondition } from '../task-state/stages.js'
import { sandboxNeededUntilMs } from './deadline.js'
import { planTask, type TaskPlan, type TaskWorld } from './plan.js'
import {
  at,
  attempt,
  claim,
  condition,
  planOf,
  readyClaim,
  starting,
  type TaskShape,
  t0,
  task,
  toAgent,
  toEnd,
  toSandbox,
  toSetup,
} from './plan-worlds.test-suite.js'

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

it.each<{ when: string; world: Partial<TaskWorld>; looksAgainMs: number | undefined }>([
  { when: 'the agent runs: at its deadline', world: { now: at(1) }, looksAgainMs: 59_000 },
  {
    when: 'the sandbox is away: when its grace is over, whatever the step does',
    world: {
      task: task({ passed: toAgent, spec: { timeoutSeconds: 600 } }),
      claim: claim(condition('Ready', 'False', 'DependenciesNotReady')),
      step: { name: 'follow-agent', running: true },
      now: at(10),
    },
    looksAgainMs: 110_000,
  },
])('looks again by its own timer when $when', ({ world, looksAgainMs }) => {
  const base = { task: task({ passed: toAgent }), claim: readyClaim, step: undefined, mayStart: true, now: at(1) }
  expect(planTask({ ...base, ...world }).requeueAfterMs).toBe(looksAgainMs)
})

it.each<{ when: string; shape: TaskShape; untilSeconds: number | undefined }>([
  { when: 'it waits', shape: {}, untilSeconds: undefined },
  { when: 'it has no sandbox yet', shape: { passed: ['Admitted'] }, untilSeconds: undefined },
  { when: 'its sandbox is ready', shape: { passed: toSandbox }, untilSeconds: 10 + 300 + 60 + 900 },
  { when: 'its agent runs', shape: { passed: toAgent }, untilSeconds: 60 + 900 },
  { when: 'it has ended', shape: { passed: toAgent, also: [condition('Succeeded')] }, untilSeconds: undefined },
])('says how long it needs its sandbox when $when', ({ shape, untilSeconds }) => {
  const untilMs = sandboxNeededUntilMs(task(shape), at(10))
  expect(untilMs === undefined ? undefined : (untilMs - t0.getTime()) / 1000).toBe(untilSeconds)
})

describe('a task whose model calls were refused for its budget', () => {
  const budgetRefusal = 'the task has used 60 of its 50 tokens'
  const running: StageCondition[] = ['Admitted', 'SandboxReady', 'RepositoryReady', 'SetupDone', 'AgentStarted']
  const plan = (shape: TaskShape, seconds = 10) =>
    planTask({
      task: task({ ...shape, status: { times: { runningAt: '2026-01-01T00:00:00Z' } } }),
      claim: claim(condition('Ready')),
      step: undefined,
      mayStart: true,
      budgetRefusal,
      now: at(seconds),
    }).actions

  it('has its agent ended like a cancelled one', () => {
    expect(plan({ passed: running })).toEqual([{ kind: 'runStep', step: 'stop-agent', reason: 'BudgetExceeded' }])
  })
  it('is cancelled or out of time first, where it is that too', () => {
    expect(plan({ passed: running, spec: { cancelRequested: true } })).toMatchObject([{ reason: 'Cancelled' }])
    expect(plan({ passed: running }, 61)).toMatchObject([{ reason: 'Timeout' }])
  })
  it('keeps its work', () => {
    const ended = condition('AgentFinished', 'True', 'BudgetExceeded', budgetRefusal)
    expect(plan({ passed: running, also: [ended] })).toMatchObject([{ kind: 'runStep', step: 'collect' }])
    const collected = [ended, condition('ResultCollected')]
    expect(plan({ passed: running, also: collected })).toMatchObject([
      { kind: 'finish', ending: { code: 'BudgetExceeded', message: budgetRefusal } },
    ])
  })
})

const finish = (code: string, message: string): TaskPlan => ({
  actions: [{ kind: 'finish', ending: { code, message } }],
})
const admitted = { task: task({ passed: ['Admitted'] }) }
const claimWith = (reason: string, message = ''): Partial<TaskWorld> => ({
  ...admitted,
  claim: claim(condition('Ready', 'False', reason, message)),
})
const ended = (also: Parameters<typeof condition>[], status: TaskShape['status'] = {}): Partial<TaskWorld> => ({
  task: task({ passed: toAgent, also: also.map((row) => condition(...row)), status }),
  claim: readyClaim,
})
const gone = { ...readyClaim, metadata: { ...readyClaim.metadata, deletionTimestamp: '2026-01-01T00:00:01Z' } }

describe('what the user is told, and when the task is looked at again', () => {
  it.each<{ when: string; world: Partial<TaskWorld>; plan: TaskPlan }>([
    {
      when: 'a place is free',
      world: {},
      plan: {
        actions: [{ kind: 'record', condition: 'Admitted', reason: 'Scheduled', message: 'a place was free' }],
      },
    },
    {
      when: 'only a push is retried: it takes no place',
      world: { mayStart: false, task: task({ spec: { retry: { from: 'push', uid: 'u' } } }) },
      plan: {
        actions: [{ kind: 'record', condition: 'Admitted', reason: 'Scheduled', message: 'a place was free' }],
      },
    },
    {
      when: 'an agent is retried and no place is free',
      world: { mayStart: false, task: task({ spec: { retry: { from: 'agent', uid: 'u' } } }) },
      plan: { actions: [] },
    },
    {
      when: 'it asks for no egress where nodes have none by name',
      world: { hasEgressByName: false, mayStart: false },
      plan: { actions: [] },
    },
    {
      when: 'it asks for egress where nodes have it by name',
      world: { mayStart: false, task: task({ spec: { egress: ['a.example:443'] } }), hasEgressByName: true },
      plan: { actions: [] },
    },
    {
      when: 'only its set-up asks for egress, where nodes have none by name',
      world: { task: task({ spec: { setupEgress: ['a.example:443'] } }), hasEgressByName: false },
      plan: finish('EgressUnsupported', 'the nodes of this cluster do not let a task reach addresses by name'),
    },
    {
      when: 'it is the first of several attempts and the others are not made yet',
      world: {
        task: task({
          spec: { group: { name: 'g', number: 1, branch: 'b', agents: [{ name: 'claude' }, { name: 'codex' }] } },
        }),
      },
      plan: { actions: [{ kind: 'completeGroup' }] },
    },
    {
      when: 'it is deleted before it was looked at: it holds nothing',
      world: { task: task({ finalizers: [], deleting: true }) },
      plan: { actions: [] },
    },
    {
      when: 'the former task holds a sandbox',
      world: { ...admitted, isSandboxHeld: true },
      plan: { actions: [{ kind: 'takeClaim' }] },
    },
    {
      when: 'the name of its claim is taken',
      world: { ...admitted, isClaimNameTaken: true },
      plan: { actions: [], requeueAfterMs: 2_000 },
    },
    {
      when: 'the sandbox is ready',
      world: { ...admitted, claim: readyClaim },
      plan: {
        actions: [{ kind: 'record', condition: 'SandboxReady', reason: 'ClaimReady', message: 'sandbox sandbox-1' }],
      },
    },
    {
      when: 'the claim says ready and names no sandbox',
      world: { ...admitted, claim: { ...readyClaim, status: { conditions: [condition('Ready')] } } },
      plan: { actions: [], requeueAfterMs: 2_000 },
    },
    {
      when: 'the claim names a template that is not there',
      world: claimWith('TemplateNotFound', 'no template "x"'),
      plan: finish('TemplateNotFound', 'the sandbox claim was refused (TemplateNotFound): no template "x"'),
    },
    {
      when: 'its RuntimeClass is missing',
      world: claimWith('SandboxNotReady', 'pod rejected: RuntimeClass "gvisor" not found'),
      plan: finish('RuntimeUnavailable', 'pod rejected: RuntimeClass "gvisor" not found'),
    },
    {
      when: 'no node can give its RuntimeClass',
      world: claimWith('SandboxNotReady', 'no runtime for "kata" is configured'),
      plan: finish('RuntimeUnavailable', 'no runtime for "kata" is configured'),
    },
    {
      when: 'the sandbox is on its way and the time for it is nearly over',
      world: { ...claimWith('SandboxNotReady'), now: at(299) },
      plan: { actions: [], requeueAfterMs: 1_000 },
    },
    {
      when: 'no sandbox came in time: with what the claim says',
      world: { ...claimWith('SandboxNotReady', 'Pod is Pending'), now: at(300) },
      plan: finish('SandboxNotReady', 'no sandbox became ready in time: Pod is Pending'),
    },
    {
      when: 'a claim without a condition stays without one',
      world: { ...admitted, claim: claim(), now: at(300) },
      plan: finish('SandboxNotReady', 'no sandbox became ready in time'),
    },
    {
      when: 'a later attempt waits: its own time counts',
      world: {
        ...claimWith('SandboxNotReady'),
        task: task({
          passed: ['Admitted'],
          status: { attempt: { number: 2, startedAt: at(100).toISOString(), reason: 'lost' } },
        }),
        now: at(301),
      },
      plan: { actions: [], requeueAfterMs: 2_000 },
    },
    {
      when: 'the pod cannot start until the time is over',
      world: {
        ...claimWith('SandboxNotReady'),
        podProblem: { reason: 'Unschedulable', message: 'no room', code: 'Unschedulable', patienceMs: 999_999 },
        now: at(300),
      },
      plan: finish('Unschedulable', 'Unschedulable: no room'),
    },
    {
      when: 'the sandbox is lost the first time',
      world: { ...claimWith('PodFailed', 'exit code 1') },
      plan: {
        actions: [{ kind: 'startAgain', attempt: 2, message: 'the sandbox was lost (PodFailed: exit code 1)' }],
      },
    },
    {
      when: 'it is lost the second time',
      world: { ...claimWith('PodFailed', 'exit code 1'), task: task({ passed: ['Admitted'], status: attempt(2) }) },
      plan: {
        actions: [{ kind: 'startAgain', attempt: 3, message: 'the sandbox was lost (PodFailed: exit code 1)' }],
      },
    },
    {
      when: 'it is lost the third time',
      world: { ...claimWith('PodFailed', 'exit code 1'), task: task({ passed: ['Admitted'], status: attempt(3) }) },
      plan: finish('SandboxLost', 'the sandbox was lost (PodFailed: exit code 1)'),
    },
    {
      when: 'the kernel ended the sandbox for want of memory when the agent may have run',
      world: {
        task: task({ passed: toSetup, also: [starting] }),
        claim: claim(condition('Ready', 'False', 'PodFailed', 'OOMKilled')),
      },
      plan: finish('OutOfMemory', 'the sandbox was lost (PodFailed: OOMKilled)'),
    },
    {
      when: 'a step found the sandbox lost: its words are told',
      world: {
        task: task({ passed: ['Admitted'], also: [condition('SandboxReady', 'False', 'SandboxLost', 'no answer')] }),
        claim: readyClaim,
      },
      plan: { actions: [{ kind: 'startAgain', attempt: 2, message: 'no answer' }] },
    },
    {
      when: 'the sandbox was taken over with its work tree: nothing is set up again',
      world: {
        task: task({ passed: toSandbox, also: [condition('RepositoryReady', 'True', 'InPlace')] }),
        claim: readyClaim,
      },
      plan: {
        actions: [
          { kind: 'record', condition: 'SetupDone', reason: 'InPlace', message: 'the sandbox is set up already' },
        ],
      },
    },
    {
      when: 'the sandbox dies under the agent',
      world: { task: task({ passed: toAgent }), step: { name: 'follow-agent', running: true } },
      plan: {
        actions: [
          { kind: 'abortStep' },
          {
            kind: 'record',
            condition: 'AgentFinished',
            reason: 'SandboxLost',
            message: 'the sandbox was lost (its claim is gone)',
          },
        ],
      },
    },
    {
      when: 'the sandbox dies under an agent that is cancelled: the cancel is the cause',
      world: { task: task({ passed: toAgent, spec: { cancelRequested: true } }), claim: gone },
      plan: {
        actions: [
          { kind: 'record', condition: 'AgentFinished', reason: 'Cancelled', message: 'the task was cancelled' },
        ],
      },
    },
    {
      when: 'the agent is out of time',
      world: {
        ...ended([['AgentFinished', 'True', 'Timeout', 'the agent ran longer than 60 s'], ['ResultCollected']]),
      },
      plan: finish('Timeout', 'the agent ran longer than 60 s'),
    },
    {
      when: 'the agent changed nothing',
      world: ended([['AgentFinished', 'True', 'Completed'], ['ResultCollected']], { outcome: 'no_changes' }),
      plan: finish('Succeeded', 'the agent finished without a change'),
    },
    {
      when: 'the branch was pushed',
      world: ended([['AgentFinished', 'True', 'Completed'], ['ResultCollected'], ['Pushed']], { outcome: 'changes' }),
      plan: finish('Succeeded', 'the branch was pushed'),
    },
    {
      when: 'there is something to push',
      world: ended([['AgentFinished', 'True', 'Completed'], ['ResultCollected']], { outcome: 'changes' }),
      plan: { actions: [{ kind: 'runStep', step: 'push' }] },
    },
    {
      when: 'the remote is away and the user cancels',
      world: {
        task: task({
          passed: toAgent,
          spec: { cancelRequested: true },
          also: [condition('AgentFinished', 'True', 'Completed'), condition('ResultCollected')],
          status: { outcome: 'changes' },
        }),
        step: { name: 'push', running: false, failures: 1 },
      },
      plan: finish('Cancelled', 'the task was cancelled'),
    },
    {
      when: 'the user cancels and the push has not failed: the work is not thrown away',
      world: {
        task: task({
          passed: toAgent,
          spec: { cancelRequested: true },
          also: [condition('AgentFinished', 'True', 'Completed'), condition('ResultCollected')],
          status: { outcome: 'changes' },
        }),
        step: { name: 'push', running: false, failures: 0 },
      },
      plan: { actions: [{ kind: 'runStep', step: 'push' }] },
    },
    {
      when: 'nothing of a lost sandbox was saved',
      world: ended([
        ['AgentFinished', 'True', 'Completed'],
        ['ResultCollected', 'True', 'Lost', 'nothing was saved'],
      ]),
      plan: finish('SandboxLost', 'nothing was saved'),
    },
    {
      when: 'only a push is retried: the commits are in the record',
      world: { task: task({ passed: ['Admitted'], spec: { retry: { from: 'push', uid: 'u' } } }) },
      plan: { actions: [{ kind: 'runStep', step: 'take-over' }] },
    },
    {
      when: 'only a push is retried and it is cancelled',
      world: {
        task: task({ passed: ['Admitted'], spec: { retry: { from: 'push', uid: 'u' }, cancelRequested: true } }),
      },
      plan: finish('Cancelled', 'the task was cancelled'),
    },
    {
      when: 'it has ended and its claim is going already',
      world: { task: task({ passed: toEnd, also: [condition('Succeeded')] }), claim: gone },
      plan: { actions: [] },
    },
    {
      when: 'it has ended and a step still runs',
      world: {
        task: task({ passed: toEnd, deleting: true, also: [condition('Succeeded')] }),
        step: { name: 'push', running: true },
      },
      plan: { actions: [{ kind: 'abortStep' }] },
    },
    {
      when: 'it has ended and the step does not let go yet: its record stays',
      world: {
        task: task({ passed: toEnd, deleting: true, also: [condition('Succeeded')] }),
        step: { name: 'push', running: true, aborting: true },
      },
      plan: { actions: [] },
    },
    {
      when: 'its sandbox is kept although it went well, since work in it could not be taken out',
      world: {
        task: task({
          passed: toEnd,
          also: [condition('Succeeded')],
          status: { sandbox: { claimName: 'task-a', kept: true } },
        }),
        claim: readyClaim,
      },
      plan: { actions: [] },
    },
    {
      when: 'failed ones are kept and this one went well',
      world: {
        task: task({ passed: toEnd, spec: { keepSandbox: true }, also: [condition('Succeeded')] }),
        claim: readyClaim,
      },
      plan: { actions: [{ kind: 'deleteClaim', onlyUnchanged: false }] },
    },
    {
      when: 'it holds its sandbox for a follow-up',
      world: {
        task: task({
          passed: toEnd,
          also: [condition('Succeeded')],
          status: { sandbox: { claimName: 'task-a', heldUntil: at(31).toISOString() } },
        }),
        claim: readyClaim,
      },
      plan: { actions: [], requeueAfterMs: 30_000 },
    },
    {
      when: 'more sandboxes are held than may be',
      world: {
        task: task({
          passed: toEnd,
          also: [condition('Succeeded')],
          status: { sandbox: { claimName: 'task-a', heldUntil: at(31).toISOString() } },
        }),
        claim: readyClaim,
        isHeldOverLimit: true,
      },
      plan: { actions: [{ kind: 'letGo', reason: 'limit' }] },
    },
  ])('when $when', ({ world, plan }) => {
    expect(planOf(world)).toEqual(plan)
  })

  it('a deadline beyond what a timer can hold is looked at once a day', () => {
    const spec = { timeoutSeconds: 40 * 24 * 3600 }
    expect(planOf({ task: task({ passed: toAgent, spec }), claim: readyClaim }).requeueAfterMs).toBe(24 * 3600_000)
  })
})
