import type { AgentTask, AgentTaskStatus, Condition, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { planTask, type TaskWorld } from '../agent-task/plan.js'
import { phaseOf } from '../task-state/stages.js'
import { taskFinalizer } from '../task-state/task-marks.js'
import { checkDecision, type PlanDecision } from './plan-decision.js'
import { awaitingApproval, nextRun, released } from './plan-status.js'
import { runPrompt, runPromptWithoutSession } from './run-prompt.js'

const start = Date.parse('2026-01-01T00:00:00Z')
const at = (seconds: number): Date => new Date(start + seconds * 1000)
const condition = (type: string, status: Condition['status'] = 'True', reason = 'x'): Condition => ({
  ...{ type, status, reason, message: '', lastTransitionTime: at(0).toISOString() },
})
const sandboxStages = ['Admitted', 'SandboxReady', 'RepositoryReady', 'SetupDone']
const plan: NonNullable<AgentTaskStatus['plan']> = {
  revision: 2,
  text: 'First this, then that.',
  proposedAt: at(60).toISOString(),
  expiresAt: at(3660).toISOString(),
}
const waiting = (more: { status?: AgentTaskStatus; spec?: Partial<AgentTask['spec']> } = {}): Stored<AgentTask> => ({
  apiVersion: 'corral.dev/v1alpha1',
  kind: 'AgentTask',
  metadata: { name: 'task-a', uid: 'u', finalizers: [taskFinalizer], creationTimestamp: at(0).toISOString() } as never,
  spec: { repository: { url: '/r' }, prompt: 'Do it', agent: { name: 'claude' }, mode: 'plan', ...more.spec },
  status: {
    conditions: [...sandboxStages.map((type) => condition(type)), condition('PlanApproved', 'Unknown', 'Waiting')],
    plan,
    ...more.status,
  },
})
const decision = (verdict: PlanDecision['verdict'], more: Partial<PlanDecision> = {}): PlanDecision => ({
  ...{ revision: 2, verdict, at: at(100).toISOString(), ...more },
})
const claim = {
  metadata: { name: 'task-a' },
  status: { conditions: [condition('Ready')], sandbox: { name: 's' } },
} as unknown as NonNullable<TaskWorld['claim']>
const without = [condition('PlanApproved', 'Unknown', 'Suspended')]

describe('a task whose plan waits', () => {
  it.each<{
    when: string
    task?: Stored<AgentTask>
    world?: Partial<TaskWorld>
    does: string[]
    code?: string
    requeueAfterMs?: number
  }>([
    { when: 'nobody has decided', does: [], requeueAfterMs: 260_000 },
    { when: 'its plan is approved', task: waiting({ spec: { decision: decision('approve') } }), does: ['nextRun'] },
    { when: 'its plan is to be revised', task: waiting({ spec: { decision: decision('revise') } }), does: ['nextRun'] },
    {
      when: 'its plan is rejected',
      task: waiting({ spec: { decision: decision('reject', { remark: 'no' }) } }),
      does: ['finish'],
      code: 'Cancelled',
    },
    {
      when: 'an earlier revision was sent back',
      task: waiting({ spec: { decision: decision('revise', { revision: 1 }) } }),
      does: [],
      requeueAfterMs: 260_000,
    },
    {
      when: 'it is cancelled',
      task: waiting({ spec: { cancelRequested: true } }),
      does: ['finish'],
      code: 'Cancelled',
    },
    { when: 'its plan is too old', world: { now: at(3660) }, does: ['finish'], code: 'PlanExpired' },
    { when: 'it has held its sandbox long enough', world: { now: at(360) }, does: ['runStep suspend'] },
    { when: 'another task wants its place', world: { isPlaceWanted: true }, does: ['runStep suspend'] },
    {
      when: 'it shall hold none',
      task: waiting({ spec: { holdSandboxSeconds: 0 } }),
      does: ['runStep suspend'],
    },
    {
      when: 'everything is out of the sandbox',
      task: waiting({
        status: {
          conditions: [...sandboxStages.map((type) => condition(type)), ...without],
        },
      }),
      does: ['releaseSandbox'],
    },
    { when: 'its sandbox is lost', world: { claim: undefined }, does: ['releaseSandbox'] },
    {
      when: 'it has no sandbox any more',
      task: waiting({ status: { plan, conditions: without } }),
      world: { claim: undefined, now: at(1000) },
      does: [],
      requeueAfterMs: 2_660_000,
    },
    {
      when: 'it is decided while the sandbox is emptied',
      task: waiting({ spec: { decision: decision('approve') } }),
      world: { step: { name: 'suspend', running: true } },
      does: ['abortStep'],
    },
    {
      when: 'it is decided without a sandbox',
      task: waiting({ status: { plan, conditions: without }, spec: { decision: decision('approve') } }),
      world: { claim: undefined },
      does: ['nextRun'],
    },
  ])('when $when', ({ task = waiting(), world, does, code, requeueAfterMs }) => {
    const planned = planTask({ task, claim, step: undefined, mayStart: false, now: at(100), ...world })
    const words = planned.actions.map((action) => (action.kind === 'runStep' ? `runStep ${action.step}` : action.kind))
    expect(words).toEqual(does)
    const [first] = planned.actions
    if (code) expect(first).toMatchObject({ ending: { code } })
    if (requeueAfterMs) expect(planned.requeueAfterMs).toBe(requeueAfterMs)
    expect(phaseOf(task)).toBe('WAITING_APPROVAL')
  })
})

describe('the states of a plan', () => {
  const planned = waiting({
    status: {
      conditions: [
        ...sandboxStages.map((type) => condition(type)),
        condition('AgentStarted'),
        condition('AgentFinished', 'True', 'Planned'),
      ],
      plan,
      times: { runningAt: at(10).toISOString(), agentFinishedAt: at(60).toISOString() },
    },
  })
  const world = { claim, step: undefined, mayStart: true, now: at(100) }

  it('a plan that is there is put before a person, and the clock of the task stands still', () => {
    expect(planTask({ task: planned, ...world }).actions).toEqual([{ kind: 'awaitApproval' }])
    const next = awaitingApproval(planned, at(61))
    expect(phaseOf(next)).toBe('WAITING_APPROVAL')
    expect(next.status?.run).toMatchObject({ number: 1, usedMs: 50_000 })
    const farOff = { ...next, spec: { ...next.spec, timeoutSeconds: 60 } }
    expect(planTask({ task: farOff, ...world, now: at(300) }).actions).toEqual([])
  })

  it('an approved plan is carried out in the sandbox that was held', () => {
    const task = { ...awaitingApproval(planned, at(61)), spec: { ...planned.spec, decision: decision('approve') } }
    const next = nextRun(task, decision('approve', { plan: 'Only this.' }), 7, at(101))
    expect(next.status).toMatchObject({
      run: { number: 2, mode: 'work', eventsBefore: 7, usedMs: 50_000 },
      plan: { text: 'Only this.', verdict: 'approve' },
    })
    expect(planTask({ task: next, ...world }).actions).toEqual([{ kind: 'announceAgent' }])
  })

  it('a revised one is planned again', () => {
    const next = nextRun(awaitingApproval(planned, at(61)), decision('revise', { remark: 'smaller' }), 7, at(101))
    expect(next.status?.run).toMatchObject({ number: 2, mode: 'plan' })
    expect(planTask({ task: next, ...world }).actions).toEqual([{ kind: 'announceAgent' }])
  })

  it('without its sandbox it is admitted anew', () => {
    const task = released(awaitingApproval(planned, at(61)))
    const next = nextRun(task, decision('approve'), 7, at(101))
    expect(phaseOf(next)).toBe('QUEUED')
    expect(planTask({ task: next, ...world, mayStart: false }).actions).toEqual([])
    expect(planTask({ task: next, ...world }).actions).toEqual([
      expect.objectContaining({ kind: 'record', condition: 'Admitted' }),
    ])
  })
})

describe('a decision', () => {
  const finished = (reason: string): Condition => condition('Succeeded', 'False', reason)
  it.each<{ about: string; task: Stored<AgentTask>; revision?: number; now?: Date; code?: string; says?: RegExp }>([
    { about: 'the plan that waits is taken', task: waiting() },
    { about: 'an older revision is refused', task: waiting(), revision: 1, code: 'PlanRevised', says: /at revision 2/ },
    {
      about: 'a plan that was approved is refused',
      task: waiting({ spec: { decision: decision('approve') } }),
      code: 'PlanDecided',
      says: /already approved/,
    },
    {
      about: 'a plan that is being revised is refused',
      task: waiting({ status: { plan: { ...plan, verdict: 'revise' } } }),
      code: 'PlanDecided',
      says: /sent back to be revised/,
    },
    { about: 'an old plan is refused', task: waiting(), now: at(4000), code: 'PlanExpired', says: /expired at 2026/ },
    {
      about: 'the plan of a task that ended is refused',
      task: waiting({ status: { plan, conditions: [finished('Cancelled')] } }),
      code: 'TaskFinished',
      says: /CANCELLED/,
    },
    {
      about: 'a plan that is not there yet is refused',
      task: waiting({ status: { conditions: [], plan: undefined as never } }),
      code: 'PlanMissing',
      says: /no plan yet/,
    },
  ])('about $about', ({ task, revision = 2, now = at(100), code, says }) => {
    const decide = (): void => checkDecision(task, revision, now)
    if (!code) return expect(decide).not.toThrow()
    expect(decide).toThrow(expect.objectContaining({ code, message: expect.stringMatching(says ?? /./) }))
  })
})

describe('what the agent is told', () => {
  it('approved: to carry it out, with the remark', () => {
    const task = waiting({ spec: { decision: decision('approve', { remark: 'Mind the tests.' }) } })
    expect(runPrompt(task)).toBe('Your plan is approved.\n\nMind the tests.\n\nCarry it out.')
    expect(runPromptWithoutSession(task)).toContain('Do it\n\nYour plan for it was:\n\nFirst this, then that.')
  })

  it('changed: the plan as it is now, and the former not at all', () => {
    const task = waiting({ spec: { decision: decision('approve', { plan: 'Only this.' }) } })
    expect(runPrompt(task)).toContain('This is the plan now:\n\nOnly this.')
    expect(runPromptWithoutSession(task)).not.toContain('First this')
  })

  it('revised: the remark, and to change nothing', () => {
    const task = waiting({ spec: { decision: decision('revise', { remark: 'Smaller.' }) } })
    expect(runPrompt(task)).toBe('Smaller.\n\nRevise your plan accordingly. Change nothing yet.')
  })
})
