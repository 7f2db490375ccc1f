import { type AgentQuestion, findAgent } from '@corral/agents'
import type { AgentTask, AgentTaskStatus, Condition, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { sandboxNeededUntilMs } from '../agent-task/deadline.js'
import { planTask, type TaskWorld } from '../agent-task/plan.js'
import { withStatus } from '../agent-task/task-status.js'
import { phaseOf } from '../task-state/stages.js'
import { taskFinalizer } from '../task-state/task-marks.js'
import { deliveryOf, joinedMessages, needsFollowUp, withMessage } from '../thread/queued-messages.js'
import { inboxEntries, namedEvents, reportOf } from './inbox-entries.js'
import { withAnswer } from './question-answer.js'
import { type TalkReport, unrecorded, waitedMs, withTalk } from './question-status.js'
import { messagesView, questionsView } from './talk-view.js'

const start = Date.parse('2026-01-01T00:00:00Z')
const at = (seconds: number): Date => new Date(start + seconds * 1000)
const condition = (type: string, status: Condition['status'] = 'True', reason = 'x'): Condition => ({
  ...{ type, status, reason, message: '', lastTransitionTime: at(0).toISOString() },
})
const stages = ['Admitted', 'SandboxReady', 'RepositoryReady', 'SetupDone', 'AgentStarted']
const running = (more: { status?: AgentTaskStatus; spec?: Partial<AgentTask['spec']> } = {}): Stored<AgentTask> => ({
  apiVersion: 'corral.dev/v1alpha1',
  kind: 'AgentTask',
  metadata: { name: 'task-a', uid: 'u', finalizers: [taskFinalizer], creationTimestamp: at(0).toISOString() } as never,
  spec: {
    ...{ repository: { url: '/r' }, prompt: 'Do it', agent: { name: 'claude' }, ask: 'always' },
    ...{ timeoutSeconds: 100, questionExpirySeconds: 1000, ...more.spec },
  },
  status: {
    conditions: stages.map((type) => condition(type)),
    times: { runningAt: at(0).toISOString() },
    ...more.status,
  },
})
const claim = {
  metadata: { name: 'task-a' },
  status: { conditions: [condition('Ready')], sandbox: { name: 's' } },
} as unknown as NonNullable<TaskWorld['claim']>
const options = [
  { id: 'allow', label: 'Allow' },
  { id: 'deny', label: 'Deny' },
]
const open = (...ids: string[]): TalkReport => ({
  open: ids.map((id) => ({ id, kind: 'permission', text: `may I ${id}?`, options })),
  read: [],
})
const asked = withTalk(running(), open('q1'), at(50))
const answered = {
  ...asked,
  spec: { ...asked.spec, answers: [{ question: 'q1', option: 'deny', at: at(60).toISOString() }] },
}
const following = (report?: TalkReport) =>
  ({ name: 'follow-agent', running: true, ...(report ? { report } : {}) }) as const

describe('a task whose agent asks', () => {
  it.each<{ when: string; task: Stored<AgentTask>; world: Partial<TaskWorld>; does: unknown[]; inMs?: number }>([
    {
      when: 'a question is news',
      task: running(),
      world: { step: following(open('q1')), now: at(50) },
      does: ['recordTalk'],
    },
    {
      when: 'the question is recorded, though the timeout is over',
      task: asked,
      world: { step: following(open('q1')), now: at(500) },
      does: [],
      inMs: 550_000,
    },
    {
      when: 'a restarted platform follows it again',
      task: asked,
      world: { now: at(500) },
      does: [{ kind: 'runStep', step: 'follow-agent' }],
    },
    {
      when: 'the question is too old',
      task: asked,
      world: { now: at(1050) },
      does: [{ kind: 'runStep', step: 'stop-agent', reason: 'QuestionExpired' }],
    },
    {
      when: 'it is too old and answered',
      task: answered,
      world: { step: following(open('q1')), now: at(1051) },
      does: [],
    },
    {
      when: 'it is cancelled',
      task: { ...asked, spec: { ...asked.spec, cancelRequested: true } },
      world: { step: following(open('q1')), now: at(60) },
      does: [{ kind: 'abortStep' }],
    },
    {
      when: 'the answer was taken',
      task: answered,
      world: { step: following(open()), now: at(70) },
      does: ['recordTalk'],
    },
    {
      when: 'the time that is left is over after the answer',
      task: withTalk(answered, open(), at(550)),
      world: { now: at(601) },
      does: [{ kind: 'runStep', step: 'stop-agent', reason: 'Timeout' }],
    },
  ])('when $when does $does', ({ task, world, does, inMs }) => {
    const plan = planTask({ task, claim, step: undefined, mayStart: true, now: at(0), ...world })
    expect(plan.actions).toEqual(
      does.map((action) => (typeof action === 'string' ? expect.objectContaining({ kind: action }) : action)),
    )
    if (inMs !== undefined) expect(plan.requeueAfterMs).toBe(inMs)
  })

  it('is WAITING_INPUT until nothing is open, and its timeout stands still meanwhile', () => {
    expect(phaseOf(running())).toBe('RUNNING')
    expect(phaseOf(asked)).toBe('WAITING_INPUT')
    expect(waitedMs(asked, at(80))).toBe(30_000)
    const both = withTalk(answered, open('q2'), at(80))
    expect(phaseOf(both)).toBe('WAITING_INPUT')
    expect(both.status?.input).toMatchObject({
      waitedMs: 0,
      waitingSince: at(50).toISOString(),
      questions: [{ id: 'q1', outcome: 'answered', answer: 'Deny' }, { id: 'q2' }],
    })
    const done = withTalk(both, open(), at(90))
    expect(phaseOf(done)).toBe('RUNNING')
    expect(done.status?.input).toMatchObject({ waitedMs: 40_000, questions: [{}, { outcome: 'withdrawn' }] })
    expect(waitedMs(done, at(200))).toBe(40_000)
  })

  it('is at rest once its report is recorded, and a settled question is not opened by an old report', () => {
    expect(unrecorded(asked, open('q1'))).toBeUndefined()
    const done = withTalk(answered, open(), at(90))
    expect(unrecorded(done, open())).toBeUndefined()
    expect(phaseOf(withTalk(done, open('q1'), at(95)))).toBe('RUNNING')
    expect(unrecorded(asked, { ...open('q1'), read: ['m'] })).toBeDefined()
  })

  it.each([
    { reason: 'Cancelled', outcome: 'withdrawn' },
    { reason: 'QuestionExpired', outcome: 'expired' },
  ])('that ends with $reason has no question open: $outcome', ({ reason, outcome }) => {
    const change = { condition: 'AgentFinished', status: 'True', reason, message: '' } as const
    const ended = withStatus(asked, change, at(100))
    expect(ended.status?.input?.questions).toMatchObject([{ outcome }])
    expect(phaseOf(ended)).toBe('RUNNING')
  })

  it('keeps its sandbox until the last answer could have been used', () => {
    expect(sandboxNeededUntilMs(asked, at(60))).toBeGreaterThanOrEqual(at(1150).getTime())
  })
})

describe('an answer', () => {
  const task = { ...asked, status: { ...asked.status } }
  const input = withTalk(running(), { open: [{ id: 'q1', kind: 'input', text: 'Which?', options }], read: [] }, at(50))
  it.each<{ about: string; task: Stored<AgentTask>; body: object; now?: Date; code: string; says: RegExp }>([
    {
      about: 'an unknown question',
      task,
      body: { question: 'q9', option: 'x' },
      code: 'QuestionUnknown',
      says: /answer to q1|did not ask/,
    },
    {
      about: 'the same question again',
      task: answered,
      body: { question: 'q1', option: 'allow' },
      code: 'QuestionAnswered',
      says: /already answered: Deny/,
    },
    {
      about: 'a question that is too old',
      task,
      body: { question: 'q1', option: 'allow' },
      now: at(1051),
      code: 'QuestionExpired',
      says: /expired at/,
    },
    {
      about: 'a question that was withdrawn',
      task: withTalk(asked, open(), at(60)),
      body: { question: 'q1', option: 'allow' },
      code: 'QuestionWithdrawn',
      says: /no longer waits/,
    },
    {
      about: 'an option that is none',
      task,
      body: { question: 'q1', option: 'x' },
      code: 'Invalid',
      says: /no option "x"/,
    },
    {
      about: 'words where there are only options',
      task,
      body: { question: 'q1', answer: 'hm' },
      code: 'Invalid',
      says: /no option "hm"/,
    },
  ])('to $about is refused with $code', ({ task: to, body, now = at(70), code, says }) => {
    const refused = (): unknown => withAnswer(to, body as never, now)
    expect(refused).toThrow(expect.objectContaining({ code, message: expect.stringMatching(says) }))
  })

  it.each([
    { body: { option: 'deny' }, to: asked, is: { option: 'deny' } },
    { body: { answer: ' deny ' }, to: asked, is: { option: 'deny' } },
    { body: { answer: 'neither' }, to: input, is: { text: 'neither' } },
  ])('$body is $is', ({ body, to, is }) => {
    expect(withAnswer(to, { question: 'q1', ...body }, at(70)).at(-1)).toMatchObject({ question: 'q1', ...is })
  })

  it('counts before the agent has heard it', () => {
    expect(questionsView(answered)).toMatchObject([{ id: 'q1', outcome: 'answered', answer: 'Deny' }])
  })
})

describe('what a run is told', () => {
  const adapter = findAgent('claude')!
  const question: AgentQuestion = {
    ...{ name: 'q1', id: 'r', kind: 'permission', text: 'may I?', payload: {} },
    choices: [{ id: 'deny', label: 'Deny', allows: false }],
  }
  const messages = [
    { id: 'm1', text: 'one', at: at(1).toISOString(), steer: true },
    { id: 'm2', text: 'two', at: at(2).toISOString() },
    { id: 'm3', text: 'three', at: at(3).toISOString(), steer: true },
  ]
  const task = { ...answered, spec: { ...answered.spec, messages } }

  it('is what it has not read and the answers to what it asks, under names that stay', () => {
    const told = (heard: { questions: readonly AgentQuestion[]; read: string[] }, run = '1') => [
      ...inboxEntries(task, heard, { run, adapter }).keys(),
    ]
    expect(told({ questions: [question], read: [] })).toEqual([
      'message-0000.json',
      'message-0002.json',
      'answer-q1.json',
    ])
    expect(told({ questions: [], read: ['m1'] })).toEqual(['message-0002.json'])
    expect(told({ questions: [question], read: ['m1', 'm3'] }, '2'), 'the answer was to another run').toEqual([])
  })

  it('names questions by their run', () => {
    expect(reportOf('repair-1', { questions: [question], read: [] }).open).toMatchObject([{ id: 'repair-1.q1' }])
    expect(namedEvents('2', [{ type: 'answer', question: 'q1' }])).toEqual([{ type: 'answer', question: '2.q1' }])
  })

  it('what was not read becomes the follow-up', () => {
    const read = withTalk(task, { open: [], read: ['m1'] }, at(90))
    const ended = withStatus(read, { condition: 'Succeeded', status: 'True', reason: 'Succeeded', message: '' }, at(99))
    expect(needsFollowUp(ended)).toBe(true)
    expect(joinedMessages(ended).task).toBe('two\n\nthree')
    expect(messagesView(ended)).toMatchObject([
      { delivery: 'steered', read: true },
      { delivery: 'queued' },
      { delivery: 'steered', read: false },
    ])
    const all = { ...ended, status: { ...ended.status, readMessages: ['m1', 'm2', 'm3'] } }
    expect(needsFollowUp(all)).toBe(false)
  })

  it.each<{ to: string; task: Stored<AgentTask>; more?: object; delivery: string }>([
    { to: 'an agent that runs', task: running(), delivery: 'steered' },
    { to: 'an agent that waits', task: asked, delivery: 'steered' },
    { to: 'an agent that cannot', task: running({ spec: { agent: { name: 'gemini' } } }), delivery: 'queued' },
    { to: 'an agent that has not started', task: running({ status: { conditions: [] } }), delivery: 'queued' },
    { to: 'a follow-up with a branch', task: running(), more: { new_branch: 'b' }, delivery: 'queued' },
    {
      to: 'an agent that has ended',
      task: running({ status: { conditions: [...stages, 'AgentFinished'].map((type) => condition(type)) } }),
      delivery: 'queued',
    },
  ])('a message to $to is $delivery', ({ task: to, more, delivery }) => {
    const sent = withMessage(to, { task: 'x', ...more }, { id: 'm', now: at(9) })
    expect(deliveryOf({ ...to, spec: { ...to.spec, messages: sent } }, 'm')).toBe(delivery)
  })
})
