import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentEvent, AskPolicy } from '@corral/protocol'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AgentParser } from '../../agent-adapter.js'
import { type ClientBench, clientBench } from '../client-bench.test-suite.js'
import { codexAgent } from './codex-agent.js'

/**
 * Speaks as `codex app-server` does, as far as our client cares: a turn runs until the file `go` is there or at once, takes
 * up what it was steered with before it ends, and refuses what comes later. What it reads is kept in `read.ndjson`.
 */
const fakeCodex = String.raw`#!/usr/bin/env node
const { createInterface } = require('node:readline')
const { appendFileSync, existsSync } = require('node:fs')
const send = (value) => process.stdout.write(JSON.stringify(value) + '\n')
const until = (check) => new Promise((resolve) => { const t = setInterval(() => { if (check()) { clearInterval(t); resolve() } }, 10) })
const threadId = 'thread-1'
const tell = (method, params) => send({ method, params: { threadId, ...params } })
const item = (value) => tell('item/completed', { item: value })
let turns = 0
let active
const steered = []
const answers = []
async function turn(text) {
  const id = 'turn-' + ++turns
  active = id
  item({ type: 'userMessage', clientId: null })
  tell('item/agentMessage/delta', { delta: 'noise' })
  if (text === 'ASK') {
    send({ id: 0, method: 'item/commandExecution/requestApproval', params: { threadId, itemId: 'c', command: 'rm x' } })
    send({ id: 1, method: 'item/tool/requestUserInput', params: { threadId, itemId: 'd', questions: [{ id: 'a', question: 'A?', options: [{ label: 'x' }] }, { id: 'b', question: 'B?' }] } })
    await until(() => answers.length === 2)
  }
  if (text === 'WORK') { tell('item/started', { item: { type: 'commandExecution', id: 'c', command: 'wait' } }); await until(() => existsSync('go')) }
  if (text === 'HANG') return item({ type: 'agentMessage', text: 'hangs' })
  for (const { clientUserMessageId, input } of steered.splice(0)) item({ type: 'userMessage', clientId: clientUserMessageId, content: input })
  active = undefined
  item({ type: 'agentMessage', text: 'did ' + text })
  send({ method: 'item/completed', params: { threadId: 'another', item: { type: 'agentMessage', text: 'of a sub-agent' } } })
  tell('thread/tokenUsage/updated', { tokenUsage: { total: { inputTokens: 10, cachedInputTokens: 4, outputTokens: 2 } } })
  const isFailed = text === 'FAIL'
  tell('turn/completed', { turn: { id, status: isFailed ? 'failed' : 'completed', error: isFailed ? { message: 'unexpected status 429 Too Many Requests' } : null } })
}
createInterface({ input: process.stdin }).on('line', (line) => {
  appendFileSync('read.ndjson', line + '\n')
  const { id, method, params, result } = JSON.parse(line)
  if (method === undefined) return answers.push(result)
  if (method === 'initialize') send({ id, result: {} })
  if (method === 'thread/start' || method === 'thread/resume') send({ id, result: { thread: { id: threadId } } })
  if (method === 'turn/start') { send({ id, result: { turn: { id: 'turn-' + (turns + 1) } } }); setTimeout(turn, 20, params.input[0].text) }
  if (method === 'turn/steer' && params.expectedTurnId !== active) send({ id, error: { message: 'no active turn' } })
  else if (method === 'turn/steer') { steered.push(params); send({ id, result: {} }) }
}).on('close', () => process.exit(0))
`

describe('our client beside Codex', () => {
  let bench: ClientBench
  beforeEach(() => {
    bench = clientBench(codexAgent, fakeCodex)
  })
  afterEach(() => bench.close())

  const put: ClientBench['put'] = (name, entry) => bench.put(name, entry)
  interface Line {
    id?: number
    method?: string
    params?: Record<string, unknown>
    result?: object
  }
  const lines = () => bench.read<Line>()
  const sent = (method: string): (Record<string, unknown> | undefined)[] =>
    lines().flatMap((line) => (line.method === method ? [line.params] : []))
  const play = (
    prompt: string,
    more: { ask?: AskPolicy; resume?: { sessionId: string } } = {},
    onEvent?: (event: AgentEvent, parser: AgentParser) => void,
  ) => bench.play({ prompt, options: { model: 'm' }, ...more }, onEvent)

  it('gives the prompt, then a message once while it works, and ends with the turn', async () => {
    const message = { kind: 'message', id: 'm1', text: 'also this' }
    const { events, parser } = await play('WORK', {}, (event) => {
      if (event.type !== 'tool_call') return
      put('message-1.json', message)
      put('message-1.json', message)
      const timer = setInterval(() => {
        if (sent('turn/steer').length === 0) return
        clearInterval(timer)
        writeFileSync(join(bench.directory, 'go'), '')
      }, 10)
    })
    expect(sent('turn/steer')).toEqual([
      expect.objectContaining({ expectedTurnId: 'turn-1', clientUserMessageId: 'm1' }),
    ])
    expect(sent('thread/start')).toEqual([
      { cwd: expect.any(String), model: 'm', approvalPolicy: 'never', sandbox: 'danger-full-access' },
    ])
    expect(parser.read).toEqual(['m1'])
    expect(parser.sessionId).toBe('thread-1')
    expect(events.flatMap((event) => (event.type === 'message' ? [`${event.role} ${event.text}`] : []))).toEqual([
      'user also this',
      'assistant did WORK',
    ])
    expect(events.at(-1)).toMatchObject({ type: 'usage', input_tokens: 6, cache_read_tokens: 4, output_tokens: 2 })
    expect(parser.verdict).toEqual({ ok: true })
  })

  it('a message that is too late for a turn begins another one, or is not read', async () => {
    const { parser } = await play('FIRST', {}, (event) => {
      if (event.type === 'message' && event.text === 'did FIRST')
        put('message-1.json', { kind: 'message', id: 'm1', text: 'SECOND' })
    })
    expect(parser.read?.length).toBe(parser.finalText === 'did SECOND' ? 1 : 0)
    expect(parser.verdict).toEqual({ ok: true })
  })

  it.each<{ ask: AskPolicy; asked: string[]; decision: string; answered: object }>([
    {
      ask: 'always',
      asked: ['rm x', 'A?', 'B?'],
      decision: 'decline',
      answered: { a: { answers: ['x'] }, b: { answers: ['to B?'] } },
    },
    {
      ask: 'input',
      asked: ['A?', 'B?'],
      decision: 'accept',
      answered: { a: { answers: ['x'] }, b: { answers: ['to B?'] } },
    },
    { ask: 'never', asked: [], decision: 'accept', answered: {} },
  ])('with ask $ask it holds $asked for a person', async ({ ask, asked, decision, answered }) => {
    const { events, parser } = await play('ASK', { ask }, (event, { questions = [] }) => {
      const question = questions.find(({ name }) => event.type === 'question' && name === event.question)
      if (!question) return
      const choice = question.kind === 'permission' ? 'decline' : question.choices[0]?.id
      const answer = choice === undefined ? { text: `to ${question.text}` } : { choiceId: choice }
      put(`answer-${question.name}.json`, codexAgent.answer!(question, answer))
    })
    expect(events.flatMap((event) => (event.type === 'question' ? [event.text] : []))).toEqual(asked)
    expect(events.filter(({ type }) => type === 'answer')).toHaveLength(asked.length)
    expect(parser.questions).toEqual([])
    expect(lines().find(({ id, method }) => id === 0 && !method)?.result).toEqual({ decision })
    expect(lines().findLast(({ id, method }) => id === 1 && !method)?.result).toEqual({ answers: answered })
  })

  it('a session that is not the one that was asked for is not gone on with', async () => {
    const { parser } = await play('x', { resume: { sessionId: 'thread-2' } })
    expect(parser.verdict).toMatchObject({ ok: false, message: 'the session thread-2 is not there' })
    expect(sent('turn/start')).toEqual([])
  })

  it('a turn that failed for the model says so', async () => {
    const { parser } = await play('FAIL')
    expect(parser.verdict).toMatchObject({ ok: false, cause: 'ModelUnavailable' })
  })

  it('ended by a signal it says what the agent still said, and that it was killed', async () => {
    const { parser, events } = await play('HANG')
    expect(events).toContainEqual({ type: 'message', role: 'assistant', text: 'hangs' })
    expect(parser.verdict).toMatchObject({ ok: false, cause: 'AgentKilled' })
  })

  it('is not installed where there is no program of that name', async () => {
    rmSync(join(bench.directory, 'bin/codex'))
    const { parser } = await play('x')
    expect(parser.verdict).toMatchObject({ ok: false, cause: 'AgentNotInstalled' })
  })

  it('arguments that `codex exec` alone knows are given to it', () => {
    const places = { taskId: 't', workDir: '/w', stateDir: '/s', prompt: 'x' }
    const clientFor = (args: string[]): string | undefined =>
      codexAgent.launch({ ...places, options: { args } }).env.CORRAL_CODEX_CLIENT
    expect(clientFor(['-c', 'model_verbosity="low"', '--enable', 'x'])).toBeDefined()
    expect(clientFor(['--search'])).toBeUndefined()
    expect(clientFor(['-c', 'x=1', '--oss'])).toBeUndefined()
  })
})
