import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type AgentEvent, agentEventSchema } from '@corral/protocol'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AgentParser } from '../../agent-adapter.js'
import { acpAgent } from './acp-agent.js'

const recorded = (name: string): string => readFileSync(new URL(`fixtures/${name}.ndjson`, import.meta.url), 'utf8')
/** The first conversation of a recording: later ones of the same file loaded the session again. */
const firstTurn = (name: string): Buffer => {
  const lines = recorded(name).split(/(?<=\n)/)
  const end = lines.findIndex((line) => line.includes('"stopReason"'))
  return Buffer.from(lines.slice(0, end + 1).join(''))
}

function told(event: AgentEvent): string {
  switch (event.type) {
    case 'message':
      return `${event.thinking ? 'thinks' : 'says'} ${event.text}`
    case 'tool_call':
      return `calls ${event.tool}`
    case 'tool_result':
      return `gets ${event.is_error ? 'an error' : 'an answer'}`
    case 'file_changed':
      return `${event.change} ${event.path}`
    default:
      return event.type
  }
}

describe('a recorded conversation', () => {
  it.each(['claude', 'codex', 'gemini', 'opencode'])('with %s is told whole, however it is cut', (name) => {
    const bytes = firstTurn(name)
    const read = (chunks: Uint8Array[]) => {
      const parser = acpAgent.createParser()
      const events = chunks.flatMap((chunk) => parser.push(chunk, 'stdout'))
      events.push(...parser.end({ exitCode: 0 }))
      return { events, parser }
    }
    const { events, parser } = read([bytes])
    for (const event of events) agentEventSchema.parse(event)
    expect(parser.verdict).toEqual({ ok: true })
    expect(parser.sessionId).toMatch(/\S+/)
    expect(events.map(told)).toContainEqual(expect.stringMatching(/^says /))
    expect(events.map(told)).toContainEqual(expect.stringMatching(/^calls /))
    expect(read([...bytes].map((byte) => Uint8Array.of(byte))).events).toEqual(events)
  })

  it('a question waits until our client has answered it', () => {
    const parser = acpAgent.createParser()
    const ask = recorded('claude')
      .split('\n')
      .find((line) => line.includes('session/request_permission'))
    parser.push(Buffer.from(`${ask}\n`), 'stdout')
    expect(parser.questions, 'our client may decide itself').toEqual([])
    expect(parser.push(Buffer.from('{"corral":"asks","id":"0"}\n'), 'stdout')).toMatchObject([
      { type: 'question', question: 'q1', kind: 'permission' },
    ])
    expect(parser.questions).toMatchObject([
      { name: 'q1', kind: 'permission', choices: [{ allows: true }, { allows: true }, { allows: false }] },
    ])
    expect(parser.push(Buffer.from('{"corral":"answered","name":"q1","text":"Allow"}\n'), 'stdout')).toEqual([
      { type: 'answer', question: 'q1', text: 'Allow' },
    ])
    expect(parser.questions).toEqual([])
  })

  it.each([
    { stop: 'refusal', says: /stopped: refusal/ },
    { stop: 'max_tokens', says: /stopped: max_tokens/ },
  ])('that stops with $stop has failed', ({ stop, says }) => {
    const parser = acpAgent.createParser()
    parser.push(Buffer.from(`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"${stop}"}}\n`), 'stdout')
    parser.end({ exitCode: 1 })
    expect(parser.verdict).toMatchObject({ ok: false, cause: 'AgentFailed', message: expect.stringMatching(says) })
  })
})

/** An agent as small as the protocol allows; what it does is said by its argument. */
const agentSource = String.raw`
import { createInterface } from 'node:readline'
const kind = process.argv[2]
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n')
let promptId
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line)
  if (method === 'initialize') return send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  if (method === 'session/new') {
    if (kind === 'refuses') return send({ id, error: { code: -32000, message: 'Authentication required' } })
    if (kind === 'plans') return send({ id, result: { sessionId: 's1', configOptions: [{ id: 'm', category: 'mode', options: [{ value: 'build' }, { value: 'plan' }] }] } })
    return send({ id, result: { sessionId: 's1', modes: { availableModes: [{ id: 'code' }] } } })
  }
  const say = (text) => send({ method: 'session/update', params: { sessionId: 's1', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } })
  if (method === 'session/set_config_option') {
    say('option ' + params.configId + ' is ' + params.value + '. ')
    return send({ id, result: {} })
  }
  if (id === 'e') {
    say(JSON.stringify(result))
    return send({ id: promptId, result: { stopReason: 'end_turn' } })
  }
  if (method === 'session/prompt' && kind === 'elicits') {
    promptId = id
    const properties = { style: { type: 'string', title: 'Which style?', oneOf: [{ const: 't', title: 'Tabs' }, { const: 's', title: 'Spaces' }] }, width: { type: 'integer' }, isSure: { type: 'boolean' } }
    return send({ id: 'e', method: 'elicitation/create', params: { mode: 'form', sessionId: 's1', message: 'Before I go on', requestedSchema: { type: 'object', properties, required: ['style'] } } })
  }
  if (method === 'session/prompt') {
    if (kind === 'dies') process.exit(3)
    promptId = id
    process.stdout.write('a line that is no message\n')
    return send({ id: 'p', method: 'session/request_permission', params: { sessionId: 's1', toolCall: { toolCallId: 'c', title: 'write' }, options: [{ optionId: 'no', kind: 'reject_once' }, { optionId: 'yes', kind: 'allow_once' }] } })
  }
  if (id === 'p') return send({ id: 'w', method: 'fs/write_text_file', params: { sessionId: 's1', path: process.cwd() + '/sub/out.txt', content: result.outcome.optionId } })
  if (id === 'w' && error) {
    say('refused: ' + error.message)
    return send({ id: promptId, result: { stopReason: 'end_turn' } })
  }
  if (id === 'w') return send({ id: 'r', method: 'fs/read_text_file', params: { sessionId: 's1', path: process.cwd() + '/sub/out.txt' } })
  if (id === 'r') {
    send({ method: 'session/update', params: { sessionId: 's1', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'read ' + result.content } } } })
    send({ id: promptId, result: { stopReason: 'end_turn' } })
  }
})
`

describe('our client beside a real process', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'corral-acp-'))
    writeFileSync(join(directory, 'agent.mjs'), agentSource)
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  /** `onEvent` may put files into the inbox. */
  async function play(
    command: string,
    mode: 'work' | 'plan' = 'work',
    { ask, onEvent }: { ask?: 'always'; onEvent?: (event: AgentEvent, parser: AgentParser) => void } = {},
  ) {
    const launch = acpAgent.launch({
      taskId: 't',
      prompt: 'do it',
      workDir: directory,
      stateDir: join(directory),
      options: { command },
      mode,
      inboxDir: join(directory, 'inbox'),
      ask,
    })
    for (const file of launch.files) writeFileSync(join(dirname(file.path), file.path.split('/').at(-1)!), file.content)
    const child = spawn(launch.argv[0]!, launch.argv.slice(1), {
      cwd: launch.cwd,
      env: { PATH: process.env.PATH, ...launch.env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const parser = acpAgent.createParser()
    const events: AgentEvent[] = []
    child.stdout.on('data', (chunk: Buffer) => {
      for (const event of parser.push(chunk, 'stdout')) {
        events.push(event)
        onEvent?.(event, parser)
      }
    })
    const exitCode = await new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1)))
    events.push(...parser.end({ exitCode }))
    return { events, parser, exitCode }
  }

  it('allows what is asked, serves files, and ends with the answer', async () => {
    const { events, parser, exitCode } = await play('node agent.mjs works')
    expect(exitCode).toBe(0)
    expect(parser.verdict).toEqual({ ok: true })
    expect(parser.finalText).toBe('read yes')
    expect(readFileSync(join(directory, 'sub/out.txt'), 'utf8')).toBe('yes')
    expect(events).toContainEqual({ type: 'output', stream: 'stdout', text: 'a line that is no message\n' })
  })

  it.each([
    { when: 'the agent dies', command: 'node agent.mjs dies', says: /ended before its answer \(exit code 3\)/ },
    { when: 'the agent refuses', command: 'node agent.mjs refuses', says: /Authentication required/ },
    { when: 'there is no such program', command: 'no-such-agent', says: /exit code 127/, cause: 'AgentNotInstalled' },
  ])('tells why when $when', async ({ command, says, cause = 'AgentFailed' }) => {
    const { parser, exitCode } = await play(command)
    expect(exitCode).not.toBe(0)
    expect(parser.verdict).toMatchObject({ ok: false, cause, message: expect.stringMatching(says) })
  })

  const put = (name: string, entry: object): void => {
    // As the daemon does: the content first, then the name.
    mkdirSync(join(directory, 'inbox'), { recursive: true })
    writeFileSync(join(directory, 'inbox', `.${name}`), JSON.stringify(entry))
    renameSync(join(directory, 'inbox', `.${name}`), join(directory, 'inbox', name))
  }

  it('waits for the answer to what it was told to ask', async () => {
    const { events, parser } = await play('node agent.mjs works', 'work', {
      ask: 'always',
      onEvent: (event, { questions = [] }) => {
        if (event.type === 'question') put('answer-q1.json', acpAgent.answer!(questions[0]!, { choiceId: 'no' }))
      },
    })
    expect(parser.finalText).toBe('read no')
    expect(events).toContainEqual(expect.objectContaining({ type: 'question', question: 'q1', text: 'write' }))
    expect(events).toContainEqual({ type: 'answer', question: 'q1', text: '' })
  })

  it('asks a person what the agent elicits, field by field, and sends the form when it is filled in', async () => {
    const answers: Record<string, object> = { q1: { choiceId: 's' }, q2: { text: '4' }, q3: { choiceId: 'true' } }
    const { events, parser } = await play('node agent.mjs elicits', 'work', {
      ask: 'always',
      onEvent: (event, { questions = [] }) => {
        const question = event.type === 'question' && questions.find(({ name }) => name === event.question)
        if (question) put(`answer-${question.name}.json`, acpAgent.answer!(question, answers[question.name]!))
      },
    })
    expect(events.filter(({ type }) => type === 'question')).toMatchObject([
      {
        kind: 'input',
        text: 'Before I go on\nWhich style?',
        options: [{ label: 'Tabs' }, { id: 's', label: 'Spaces' }],
      },
      { text: 'Before I go on\nwidth', options: [] },
      { text: 'Before I go on\nisSure', options: [{ label: 'Yes' }, { label: 'No' }] },
    ])
    expect(JSON.parse(parser.finalText ?? '')).toEqual({
      action: 'accept',
      content: { style: 's', width: 4, isSure: true },
    })
  })

  it('declines what the agent elicits where nobody is to be asked', async () => {
    expect((await play('node agent.mjs elicits')).parser.finalText).toBe('{"action":"decline"}')
  })

  it('finds a plan mode among the options, and lets nothing be written while the agent plans', async () => {
    const { parser } = await play('node agent.mjs plans', 'plan')
    expect(parser.finalText).toBe('option m is plan. refused: nothing is written while a plan is made')
    expect(existsSync(join(directory, 'sub/out.txt'))).toBe(false)
  })

  it('gives a message of the inbox to the agent once, when its turn has ended', async () => {
    const { events, parser } = await play('node agent.mjs works', 'work', {
      ask: 'always',
      // While it waits for an answer its turn cannot end, however slow this machine is.
      onEvent: (event, { questions = [] }) => {
        if (event.type !== 'question') return
        const message = { kind: 'message', id: 'm1', text: 'and this' }
        put('message-1.json', message)
        put('message-1.json', message)
        put(`answer-${event.question}.json`, acpAgent.answer!(questions[0]!, { choiceId: 'yes' }))
      },
    })
    expect(parser.read).toEqual(['m1'])
    expect(events.filter((event) => event.type === 'message' && event.role === 'user')).toEqual([
      { type: 'message', role: 'user', text: 'and this', delivery: 'steered', message_id: 'm1' },
    ])
    expect(
      events.filter(({ type }) => type === 'output'),
      'two turns',
    ).toHaveLength(2)
    expect(parser.verdict).toEqual({ ok: true })
  })

  it('an agent without a plan mode is not asked to plan', async () => {
    const { parser } = await play('node agent.mjs works', 'plan')
    expect(parser.verdict).toMatchObject({
      ok: false,
      message: expect.stringContaining('no plan mode (its modes: code)'),
    })
  })
})
