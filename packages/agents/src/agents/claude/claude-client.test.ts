import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentEvent, AskPolicy } from '@corral/protocol'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AgentParser } from '../../agent-adapter.js'
import { type ClientBench, clientBench } from '../client-bench.test-suite.js'
import { claudeAgent } from './claude-agent.js'

/**
 * Speaks as Claude Code does on a pipe, as far as our client cares: a message is repeated when it is taken up, after the call
 * that runs; a turn ends with a result; the end of its input ends it. What it reads is kept in `read.ndjson`.
 */
const fakeClaude = String.raw`#!/usr/bin/env node
const { createInterface } = require('node:readline')
const { appendFileSync, existsSync } = require('node:fs')
const print = (value) => process.stdout.write(JSON.stringify(value) + '\n')
const queue = []
let isBusy = false
const until = (check) => new Promise((resolve) => { const t = setInterval(() => { if (check()) { clearInterval(t); resolve() } }, 10) })
const takeUp = () => { for (const m of queue.splice(0)) print({ ...m, isReplay: true }) }
async function turn() {
  if (isBusy || queue.length === 0) return
  isBusy = true
  const first = queue[0].message.content
  takeUp()
  if (first === 'ASK') {
    print({ type: 'control_request', request_id: 'r1', request: { subtype: 'can_use_tool', tool_name: 'AskUserQuestion', tool_use_id: 'c', input: { questions: [{ question: 'A?', options: [{ label: 'x' }] }, { question: 'B?', options: [] }] } } })
    print({ type: 'control_request', request_id: 'r2', request: { subtype: 'can_use_tool', tool_name: 'Bash', tool_use_id: 'd', input: { command: 'ls' } } })
    await until(() => answered >= 2)
  }
  if (first === 'WORK') { print({ type: 'assistant', message: { content: [{ type: 'tool_use', id: 'c', name: 'Bash', input: {} }] } }); await until(() => existsSync('go')); takeUp() }
  if (first === 'HANG') { print({ type: 'assistant', message: { content: [{ type: 'text', text: 'hangs' }] } }); return }
  print({ type: 'assistant', message: { content: [{ type: 'text', text: 'did ' + first }] } })
  print({ type: 'result', subtype: 'success', is_error: false, result: 'did ' + first })
  isBusy = false
  turn()
}
let answered = 0
createInterface({ input: process.stdin }).on('line', (line) => {
  appendFileSync('read.ndjson', line + '\n')
  const message = JSON.parse(line)
  if (message.type === 'control_response') answered++
  else queue.push(message)
  setImmediate(turn)
}).on('close', () => process.exit(0))
appendFileSync('argv.txt', process.argv.slice(2).join(' '))
`

describe('our client beside Claude Code', () => {
  let bench: ClientBench
  beforeEach(() => {
    bench = clientBench(claudeAgent, fakeClaude)
  })
  afterEach(() => bench.close())

  const put: ClientBench['put'] = (name, entry) => bench.put(name, entry)
  const lines = () => bench.read<{ type: string; message?: { content: string }; response?: object }>()
  const play = (prompt: string, ask: AskPolicy, onEvent: (event: AgentEvent, parser: AgentParser) => void) =>
    bench.play({ prompt, options: {}, ask }, onEvent)

  it('gives the prompt, then a message once while it works, and ends with the turn', async () => {
    const message = { kind: 'message', id: 'm1', text: 'also this' }
    const { events, parser, exit } = await play('WORK', 'never', (event) => {
      if (event.type !== 'tool_call') return
      put('message-1.json', message)
      put('message-1.json', message)
      const timer = setInterval(() => {
        if (lines().length < 2) return
        clearInterval(timer)
        writeFileSync(join(bench.directory, 'go'), '')
      }, 10)
    })
    expect(exit).toEqual({ exitCode: 0 })
    expect(lines().map(({ message: said }) => said?.content)).toEqual(['WORK', 'also this'])
    expect(parser.read).toEqual(['m1'])
    expect(events.flatMap((event) => (event.type === 'message' ? [`${event.role} ${event.text}`] : []))).toEqual([
      'user also this',
      'assistant did WORK',
    ])
    expect(readFileSync(join(bench.directory, 'argv.txt'), 'utf8')).not.toContain('--permission-prompt-tool')
  })

  it('a message that comes with the end of a turn begins another one', async () => {
    const { parser } = await play('FIRST', 'never', (event) => {
      if (event.type === 'message' && event.text === 'did FIRST')
        put('message-1.json', { kind: 'message', id: 'm1', text: 'SECOND' })
    })
    // Where the turn had ended before it was seen, nothing says that it was read.
    expect(parser.read?.length).toBe(parser.finalText === 'did SECOND' ? 1 : 0)
    expect(parser.verdict).toEqual({ ok: true })
  })

  it.each<{ ask: AskPolicy; asked: string[] }>([
    { ask: 'always', asked: ['A?', 'B?', 'Bash'] },
    { ask: 'input', asked: ['A?', 'B?'] },
  ])(
    'with ask $ask it holds $asked for a person, and answers questions of one call together',
    async ({ ask, asked }) => {
      const { events, parser } = await play('ASK', ask, (event, { questions = [] }) => {
        const question = questions.find(({ name }) => event.type === 'question' && name === event.question)
        if (!question) return
        const answer = question.kind === 'input' ? { text: `to ${question.text}` } : { choiceId: 'deny' }
        put(`answer-${question.name}.json`, claudeAgent.answer!(question, answer))
      })
      expect(events.flatMap((event) => (event.type === 'question' ? [event.text] : []))).toEqual(asked)
      expect(events.filter(({ type }) => type === 'answer')).toHaveLength(asked.length)
      expect(parser.questions).toEqual([])
      const responses = lines().flatMap(({ response }) => (response ? [response] : []))
      expect(responses).toContainEqual(
        expect.objectContaining({
          request_id: 'r1',
          response: {
            behavior: 'allow',
            updatedInput: expect.objectContaining({ answers: { 'A?': 'to A?', 'B?': 'to B?' } }),
          },
        }),
      )
      const behavior = ask === 'always' ? 'deny' : 'allow'
      expect(responses).toContainEqual(
        expect.objectContaining({ request_id: 'r2', response: expect.objectContaining({ behavior }) }),
      )
      expect(readFileSync(join(bench.directory, 'argv.txt'), 'utf8')).toContain('--permission-prompt-tool stdio')
    },
  )

  it('ended by a signal it says what the agent still said, and that it was killed', async () => {
    const { parser, events } = await play('HANG', 'never', () => undefined)
    expect(events).toContainEqual({ type: 'message', role: 'assistant', text: 'hangs' })
    expect(parser.verdict).toMatchObject({ ok: false, cause: 'AgentKilled' })
  })

  it('is not installed where there is no program of that name', async () => {
    rmSync(join(bench.directory, 'bin/claude'))
    const { parser } = await play('x', 'never', () => undefined)
    expect(parser.verdict).toMatchObject({ ok: false, cause: 'AgentNotInstalled' })
  })
})
