import { join } from 'node:path'
import type { TaskView } from '@corral/protocol'
import {
  type GitFixture,
  gitRepository,
  isFullSize,
  type PlatformProcess,
  startPlatformProcess,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askingAgent, askingAgentSource } from './asking-agent.js'

let platform: PlatformProcess
let count = 0
beforeAll(async () => {
  platform = await startPlatformProcess()
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const repository = (): Promise<GitFixture> =>
  gitRepository(join(platform.directory, `repo-${++count}`), { 'agent.mjs': askingAgentSource })

async function create(repo: GitFixture, task: string, more: object = {}): Promise<string> {
  return platform.api.create({ repo: repo.path, task, agent: askingAgent, ask: 'always', ...more })
}
async function until(id: string, what: string, isThere: (view: TaskView) => boolean): Promise<TaskView> {
  let view = await platform.api.get(id)
  await waitUntil(`${what} of ${id}`, async () => {
    view = await platform.api.get(id)
    if (!isThere(view) && view.times?.finished_at) throw new Error(JSON.stringify(view.cause ?? view.status))
    return isThere(view)
  })
  return view
}
const untilAsked = (id: string, name = 'q1'): Promise<TaskView> =>
  until(id, `question ${name}`, ({ status, questions }) => {
    return (
      status === 'WAITING_INPUT' && questions?.some(({ id: known, outcome }) => known === name && !outcome) === true
    )
  })
const answer = (id: string, body: object) => platform.api.request('POST', `/tasks/${id}/answers`, { body })
const send = (id: string, task: string, more: object = {}) =>
  platform.api.request('POST', `/tasks/${id}/messages`, { body: { task, ...more } })
const inSandbox = async (id: string, command: string): Promise<void> => {
  const done = await platform.corral(['task', 'shell', id, '--', 'sh', '-c', command])
  if (done.code !== 0) throw new Error(done.stderr)
}
const letGo = (id: string): Promise<void> => inSandbox(id, 'cd /workspace/repo && touch go')
const eventsOf = async (id: string, type: string) =>
  (await platform.api.allEvents(id)).filter((event) => event.type === type)

describe('a task whose agent asks', () => {
  it('waits for the answer, takes the first one alone, and goes on with it', async () => {
    const repo = await repository()
    // Two seconds of its own: it waits longer than that.
    const id = await create(repo, 'ask', { timeout_seconds: 2 })
    const waiting = await untilAsked(id)
    const options = [
      { id: 'yes', label: 'Allow' },
      { id: 'no', label: 'Reject' },
    ]
    expect(waiting.questions).toMatchObject([{ id: 'q1', kind: 'permission', text: 'Write chosen.txt', options }])
    const refusals = [
      { body: { question: 'q7', option: 'yes' }, status: 409, code: 'QuestionUnknown' },
      { body: { question: 'q1', option: 'maybe' }, status: 422, code: 'Invalid' },
      { body: { question: 'q1', answer: 'do what you like' }, status: 422, code: 'Invalid' },
      { body: { question: 'q1' }, status: 422, code: 'Invalid' },
    ]
    for (const { body, status, code } of refusals)
      expect(await answer(id, body), JSON.stringify(body)).toMatchObject({ status, json: { error: { code } } })
    const shown = await platform.corral(['task', 'answer', id])
    expect(shown.stdout).toContain('Write chosen.txt')
    expect(shown.stdout).toContain('2. Reject')
    await waitUntil('its time to be over', async () => {
      return Date.now() > Date.parse(waiting.times!.running_at!) + 2_500
    })
    expect(await platform.corral(['task', 'answer', id, '--option', '2'])).toMatchObject({ code: 0 })
    expect(await answer(id, { question: 'q1', option: 'yes' })).toMatchObject({
      status: 409,
      json: { error: { code: 'QuestionAnswered', message: expect.stringContaining('Reject') } },
    })
    const ended = await platform.api.untilEnded(id)
    expect(ended, JSON.stringify(ended.cause)).toMatchObject({ status: 'SUCCEEDED', ask: 'always' })
    expect(ended.questions).toMatchObject([{ id: 'q1', outcome: 'answered', answer: 'Reject' }])
    expect(await repo.show(ended.branch!, 'chosen.txt')).toBe('no')
    expect(await eventsOf(id, 'question')).toMatchObject([{ question: 'q1', text: 'Write chosen.txt', options }])
    expect(await eventsOf(id, 'answer')).toMatchObject([{ question: 'q1', text: 'Reject' }])
    expect(await answer(id, { question: 'q1', option: 'yes' })).toMatchObject({
      status: 409,
      json: { error: { code: 'QuestionAnswered' } },
    })
  })

  it('goes on waiting over kill -9 of the platform, and hears each answer once', async () => {
    const repo = await repository()
    const id = await create(repo, 'ask and ask')
    await untilAsked(id)
    await platform.kill9()
    await platform.restart()
    expect(await platform.api.get(id)).toMatchObject({ status: 'WAITING_INPUT', questions: [{ id: 'q1' }] })
    expect(await answer(id, { question: 'q1', answer: 'allow' })).toMatchObject({ status: 202 })
    // Killed at once: whether the agent was told before or is told after, it is told once.
    await platform.kill9()
    await platform.restart()
    await untilAsked(id, 'q2')
    expect(await answer(id, { question: 'q2', option: 'no' })).toMatchObject({ status: 202 })
    const ended = await platform.api.untilEnded(id)
    expect(ended, JSON.stringify(ended.cause)).toMatchObject({ status: 'SUCCEEDED' })
    expect(await repo.show(ended.branch!, 'chosen.txt')).toBe('yes\nno')
    expect((await eventsOf(id, 'question')).map((event) => 'question' in event && event.question)).toEqual(['q1', 'q2'])
    expect(await eventsOf(id, 'answer')).toHaveLength(2)
  })

  if (isFullSize)
    it('expires with its cause and keeps its work', async () => {
      const repo = await repository()
      const id = await create(repo, 'ask', { question_expiry_seconds: 1 })
      const ended = await platform.api.untilEnded(id)
      expect(ended).toMatchObject({
        status: 'FAILED',
        cause: { code: 'QuestionExpired', message: expect.stringContaining('Write chosen.txt') },
        questions: [{ outcome: 'expired' }],
      })
      expect(await repo.show(ended.branch!, 'told.txt')).toBe('ask')
      expect(await answer(id, { question: 'q1', option: 'yes' })).toMatchObject({
        status: 409,
        json: { error: { code: 'QuestionExpired' } },
      })
    })

  if (isFullSize)
    it('is cancelled while it waits', async () => {
      const id = await create(await repository(), 'ask')
      await untilAsked(id)
      expect((await platform.corral(['task', 'cancel', id])).code).toBe(0)
      expect(await platform.api.untilEnded(id)).toMatchObject({
        status: 'CANCELLED',
        questions: [{ outcome: 'withdrawn' }],
      })
      expect(await answer(id, { question: 'q1', option: 'yes' })).toMatchObject({
        status: 409,
        json: { error: { code: 'QuestionWithdrawn' } },
      })
    })

  it('asks nothing where nobody said so, and is refused for an agent that cannot ask', async () => {
    const repo = await repository()
    const ended = await platform.api.run({ repo: repo.path, task: 'ask', agent: askingAgent })
    expect(ended).toMatchObject({ status: 'SUCCEEDED' })
    expect(ended.questions).toBeUndefined()
    expect(await repo.show(ended.branch!, 'chosen.txt')).toBe('yes')
    const agent = { name: 'command', command: 'true' }
    const body = { repo: repo.path, task: 'x', agent, ask: 'input' }
    expect(await platform.api.request('POST', '/tasks', { body })).toMatchObject({
      status: 422,
      text: expect.stringContaining('cannot ask'),
    })
  })
})

describe('a message to a task whose agent runs', () => {
  it('reaches the agent once, over kill -9 of the platform, and is told in the log', async () => {
    const repo = await repository()
    const id = await create(repo, 'wait first')
    await until(id, 'the agent', ({ status }) => status === 'RUNNING')
    const first = await send(id, 'wait second')
    expect(first).toMatchObject({ status: 202, json: { delivery: 'steered' } })
    await platform.kill9()
    await platform.restart()
    const sent = await platform.corral(['task', 'send', id, 'third'])
    expect(sent.stdout).toContain('steered')
    await letGo(id)
    await until(id, 'the first message', ({ messages }) => messages?.[0]?.read === true)
    await platform.kill9()
    await platform.restart()
    await letGo(id)
    const ended = await platform.api.untilEnded(id)
    expect(ended, JSON.stringify(ended.cause)).toMatchObject({ status: 'SUCCEEDED' })
    expect(ended.messages).toMatchObject([
      { task: 'wait second', delivery: 'steered', read: true },
      { task: 'third', delivery: 'steered', read: true },
    ])
    const told = (await repo.show(ended.branch!, 'told.txt')).split('\n')
    expect(told.filter((line) => line === 'wait second')).toHaveLength(1)
    expect(told.filter((line) => line === 'third')).toHaveLength(1)
    const messages = (await eventsOf(id, 'message')).filter((event) => 'role' in event && event.role === 'user')
    expect(messages).toMatchObject([
      { text: 'wait second', delivery: 'steered', message_id: ended.messages?.[0]?.id },
      { text: 'third', delivery: 'steered' },
    ])
    expect((await platform.api.request('GET', '/tasks')).text, 'nothing is left for a follow-up').not.toContain(
      `"continues":"${id}"`,
    )
  })

  it('becomes the follow-up where the agent ended before it read it, and where it is about the follow-up', async () => {
    const repo = await repository()
    const id = await create(repo, 'wait')
    await until(id, 'the agent', ({ status }) => status === 'RUNNING')
    expect(await send(id, 'on a branch', { new_branch: 'other' })).toMatchObject({ json: { delivery: 'queued' } })
    expect(await send(id, 'never read')).toMatchObject({ json: { delivery: 'steered' } })
    await inSandbox(id, 'cd /workspace/repo && touch die')
    const ended = await platform.api.untilEnded(id)
    expect(ended.messages).toMatchObject([{ delivery: 'queued' }, { delivery: 'steered', read: false }])
    let next: TaskView | undefined
    await waitUntil('the follow-up', async () => {
      const { json } = await platform.api.request('GET', '/tasks')
      next = (json as { tasks: TaskView[] }).tasks.find(({ continues }) => continues === id)
      return next !== undefined
    })
    expect(next).toMatchObject({ task: 'on a branch\n\nnever read', new_branch: 'other' })
    await platform.api.request('POST', `/tasks/${next!.id}/cancel`)
  })
})
