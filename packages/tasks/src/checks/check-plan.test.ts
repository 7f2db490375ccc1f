import type { AgentTask, Condition, SandboxClaim, Stored } from '@corral/resources'
import { expect, it } from 'vitest'
import { planTask, type TaskWorld } from '../agent-task/plan.js'
import { mayUseModel } from '../broker/brokered-task.js'
import { taskFinalizer } from '../task-state/task-marks.js'

const t0 = new Date('2026-01-01T00:00:00Z')
const at = (seconds: number): Date => new Date(t0.getTime() + seconds * 1000)
const time = (seconds: number): string => at(seconds).toISOString()
const condition = (type: string, reason = 'Done', status: Condition['status'] = 'True'): Condition => ({
  type,
  status,
  reason,
  message: reason,
  lastTransitionTime: time(0),
})
const before = ['Admitted', 'SandboxReady', 'RepositoryReady', 'SetupDone', 'AgentStarted']
const round = (passed: boolean) => ({ round: 1, passed, startedAt: time(20), finishedAt: time(25), results: [] })
const repair = { round: 1, startedAt: time(25), agentEventsBefore: 0 }

interface Shape {
  agent?: string
  done?: Condition
  spec?: Partial<AgentTask['spec']>
  status?: Partial<NonNullable<AgentTask['status']>>
  also?: Condition[]
}

function task({ agent = 'Completed', done, spec, status, also = [] }: Shape): Stored<AgentTask> {
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      name: 'task-a',
      uid: 'uid-a',
      resourceVersion: '1',
      creationTimestamp: time(0),
      finalizers: [taskFinalizer],
    },
    spec: {
      repository: { url: '/repo' },
      prompt: 'do it',
      agent: { name: 'command', command: 'true' },
      timeoutSeconds: 60,
      checks: [{ name: 'test', command: 'npm test' }],
      ...spec,
    },
    status: {
      times: { runningAt: time(0), agentFinishedAt: time(20) },
      conditions: [
        ...before.map((type) => condition(type)),
        condition('AgentFinished', agent),
        ...(done ? [done] : []),
        ...also,
      ],
      ...status,
    },
  }
}

const claim = {
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxClaim',
  metadata: { name: 'task-a', uid: 'c', resourceVersion: '2', creationTimestamp: time(0) },
  spec: { warmPoolRef: { name: 'default' } },
  status: { conditions: [condition('Ready')], sandbox: { name: 's' } },
} as Stored<SandboxClaim>

const going = condition('ChecksDone', 'Repairing', 'Unknown')
const collected = condition('ResultCollected', 'Accepted')

it.each<{ when: string; shape: Shape; world?: Partial<TaskWorld>; does: string[] }>([
  { when: 'the agent ended well', shape: {}, does: ['runStep check'] },
  { when: 'a task has no checks', shape: { spec: { checks: [] } }, does: ['runStep collect'] },
  {
    when: 'the repository declares the checks',
    shape: { spec: { checks: undefined as never }, status: { checks: { declared: [{ name: 'a', command: 'b' }] } } },
    does: ['runStep check'],
  },
  { when: 'the agent failed, its work is not judged', shape: { agent: 'AgentFailed' }, does: ['runStep collect'] },
  {
    when: 'a check runs',
    shape: {},
    world: { step: { name: 'check', running: true } },
    does: [],
  },
  {
    when: 'checks run past the time of the agent, which is not theirs',
    shape: {},
    world: { now: at(3600) },
    does: ['runStep check'],
  },
  {
    when: 'a round failed and the agent is sent back',
    shape: { done: going, status: { checks: { rounds: [round(false)], repair } } },
    world: { now: at(30) },
    does: ['runStep repair'],
  },
  {
    when: 'the agent that was sent back has used up its time',
    shape: {
      done: going,
      status: { checks: { rounds: [round(false)], repair }, times: { runningAt: time(0), agentFinishedAt: time(20) } },
    },
    world: { now: at(66) },
    does: ['runStep stop-checks Timeout'],
  },
  {
    when: 'the agent that was sent back is over its budget',
    shape: { done: going, status: { checks: { rounds: [round(false)], repair } } },
    world: { now: at(30), budgetRefusal: 'too much' },
    does: ['runStep stop-checks BudgetExceeded'],
  },
  {
    when: 'the repair is done, checks run again',
    shape: { done: condition('ChecksDone', 'Repaired', 'Unknown'), status: { checks: { rounds: [round(false)] } } },
    does: ['runStep check'],
  },
  {
    when: 'the task is cancelled while a check runs',
    shape: { spec: { cancelRequested: true } },
    world: { step: { name: 'check', running: true } },
    does: ['abortStep'],
  },
  {
    when: 'the check has let go',
    shape: { spec: { cancelRequested: true } },
    does: ['runStep stop-checks Cancelled'],
  },
  { when: 'the sandbox is lost while checks run', shape: {}, world: { claim: undefined }, does: ['runStep salvage'] },
  { when: 'checks passed', shape: { done: condition('ChecksDone', 'Passed') }, does: ['runStep collect'] },
  {
    when: 'checks failed for good',
    shape: { done: condition('ChecksDone', 'ChecksFailed') },
    does: ['runStep collect'],
  },
  {
    when: 'checks failed, the branch is pushed',
    shape: { done: condition('ChecksDone', 'ChecksFailed'), also: [collected], status: { outcome: 'changes' } },
    does: ['runStep push'],
  },
  {
    when: 'checks failed and the branch is not to be pushed',
    shape: {
      done: condition('ChecksDone', 'ChecksFailed'),
      also: [collected],
      spec: { onFailedChecks: 'no-push' },
      status: { outcome: 'changes' },
    },
    does: ['finish ChecksFailed'],
  },
  {
    when: 'a task that was cancelled while it was judged is pushed all the same',
    shape: {
      done: condition('ChecksDone', 'Cancelled'),
      also: [collected],
      spec: { onFailedChecks: 'no-push' },
      status: { outcome: 'changes' },
    },
    does: ['runStep push'],
  },
  {
    when: 'checks passed and the branch is there',
    shape: {
      done: condition('ChecksDone', 'Passed'),
      also: [collected, condition('Pushed')],
      status: { outcome: 'changes' },
    },
    does: ['finish Succeeded'],
  },
])('when $when', ({ shape, world, does }) => {
  const plan = planTask({
    task: withoutUndefined(task(shape)),
    claim,
    step: undefined,
    mayStart: true,
    now: at(30),
    ...world,
  })
  expect(
    plan.actions.map((action) =>
      action.kind === 'runStep'
        ? `runStep ${action.step}${action.reason ? ` ${action.reason}` : ''}`
        : action.kind === 'finish'
          ? `finish ${action.ending.code}`
          : action.kind,
    ),
  ).toEqual(does)
})

it('an agent that repairs may use its model, a check may not', () => {
  expect(mayUseModel(task({ done: going, status: { checks: { rounds: [round(false)], repair } } }))).toBe(true)
  expect(mayUseModel(task({}))).toBe(false)
  expect(mayUseModel(task({ done: condition('ChecksDone', 'Passed') }))).toBe(false)
})

function withoutUndefined(stored: Stored<AgentTask>): Stored<AgentTask> {
  return JSON.parse(JSON.stringify(stored)) as Stored<AgentTask>
}
