import { readFileSync } from 'node:fs'
import { type AgentEvent, agentEventSchema } from '@corral/protocol'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { claudeAgent } from './claude-agent.js'

const recorded = (name: string) => readFileSync(new URL(`fixtures/${name}.ndjson`, import.meta.url))
const success = recorded('success')
const overloaded = recorded('overloaded')

function run(chunks: Uint8Array[], exitCode = 0) {
  const parser = claudeAgent.createParser()
  const events = chunks.flatMap((chunk) => parser.push(chunk, 'stdout'))
  events.push(...parser.end({ exitCode }))
  return { events, verdict: parser.verdict }
}
const lines = (...objects: object[]) => Buffer.from(objects.map((object) => `${JSON.stringify(object)}\n`).join(''))
const short = (event: AgentEvent) => {
  switch (event.type) {
    case 'message':
      return `says ${event.text}`
    case 'tool_call':
      return `calls ${event.tool} ${event.summary}`
    case 'tool_result':
      return `gets ${event.is_error ? 'an error' : 'an answer'}`
    case 'file_changed':
      return `${event.change} ${event.path}`
    default:
      return event.type
  }
}

describe('FR-5: Claude Code', () => {
  it('is started in print mode, reaches its model through the broker and gets no key', () => {
    const spec = claudeAgent.launch({
      taskId: 'task-1',
      prompt: 'fix it',
      workDir: '/work/repo',
      stateDir: '/work/state',
      options: { model: 'claude-sonnet-4-5' },
      broker: { baseUrl: 'http://corral-broker:8787/x', token: 'task-token', kind: 'anthropic' },
    })
    expect(spec.argv.slice(0, 2)).toEqual(['/bin/sh', '-c'])
    expect(spec.argv.slice(3)).toEqual(
      'claude -p --output-format stream-json --verbose --dangerously-skip-permissions --model claude-sonnet-4-5'.split(
        ' ',
      ),
    )
    expect(spec.env).toMatchObject({
      ANTHROPIC_BASE_URL: 'http://corral-broker:8787/x',
      ANTHROPIC_AUTH_TOKEN: 'task-token',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      IS_SANDBOX: '1',
      CI: 'true',
      CORRAL_PROMPT_FILE: '/work/state/prompt.md',
    })
    expect(Object.keys(spec.env)).not.toContain('ANTHROPIC_API_KEY')
    expect(spec.files[0]).toEqual({ path: '/work/state/prompt.md', content: 'fix it', mode: '0600' })
    expect(spec.files.map(({ path }) => path)).toEqual(['/work/state/prompt.md', '/work/state/claude-client.mjs'])
  })

  it('tells a recorded run that writes, edits and runs a command that fails', () => {
    const { events, verdict } = run([success])
    expect(events.map(short)).toEqual([
      'says I will write a file.',
      'calls Write /work/repo/hello.txt',
      'gets an answer',
      'written /work/repo/hello.txt',
      'calls Edit /work/repo/hello.txt',
      'gets an answer',
      'edited /work/repo/hello.txt',
      'calls Bash cat hello.txt; exit 3',
      'gets an error',
      'says Done: the file says hello world.',
      'usage',
    ])
    expect(events.at(-1)).toEqual({
      type: 'usage',
      scope: 'total',
      model: 'claude-opus-4-8[1m]',
      input_tokens: 48,
      output_tokens: 80,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
    })
    expect(verdict).toEqual({ ok: true })
  })

  it('is_error decides: a recorded run whose subtype says success has failed', () => {
    const { events, verdict } = run([overloaded], 1)
    expect(verdict).toMatchObject({ ok: false, cause: 'ModelUnavailable', message: expect.stringContaining('529') })
    expect(events.filter((event) => event.type === 'error')).toHaveLength(2)
  })

  it.each([
    { when: 'it is not installed', result: undefined, exitCode: 127, cause: 'AgentNotInstalled' },
    { when: 'it ends well without a result', result: undefined, exitCode: 0, cause: 'AgentFailed' },
    { when: 'it exits with 1', result: undefined, exitCode: 1, cause: 'AgentFailed' },
    {
      when: 'the model refuses',
      result: { is_error: true, api_error_status: 401 },
      exitCode: 1,
      cause: 'ModelRefused',
    },
    { when: 'it gives up', result: { is_error: true, result: 'no' }, exitCode: 0, cause: 'AgentFailed' },
  ])('has failed when $when', ({ result, exitCode, cause }) => {
    const { verdict } = run(result ? [lines({ type: 'result', ...result })] : [], exitCode)
    expect(verdict).toMatchObject({ ok: false, cause })
  })

  it.each([
    { run: 'run', session: '', says: '' },
    { run: 'resume', session: '11111111-1111-4111-8111-111111111111', says: 'Second done.' },
  ])('tells the session and the last words of the recorded $run', ({ run: name, session, says }) => {
    const parser = claudeAgent.createParser()
    parser.push(recorded(name), 'stdout')
    parser.end({ exitCode: 0 })
    expect(parser.verdict).toEqual({ ok: true })
    if (session) expect(parser.sessionId).toBe(session)
    else expect(parser.sessionId).toMatch(/^[0-9a-f-]{36}$/)
    if (says) expect(parser.finalText).toBe(says)
  })

  it('holds a question until it is settled, and answers in its protocol', () => {
    const parser = claudeAgent.createParser()
    const lines = recorded('permission-control')
      .toString('utf8')
      .split(/(?<=\n)/)
    const asked: string[] = []
    const answers: unknown[] = []
    const events: AgentEvent[] = []
    for (const line of lines) {
      events.push(...parser.push(Buffer.from(line), 'stdout'))
      expect(parser.questions, 'asked only where the program beside it waits for a person').toHaveLength(0)
      const { type, request_id: id } = JSON.parse(line) as { type: string; request_id: string }
      if (type !== 'control_request') continue
      events.push(...parser.push(Buffer.from(`{"corral":"asks","id":"${id}"}\n`), 'stdout'))
      const [question] = parser.questions ?? []
      if (!question) throw new Error('no question')
      asked.push(question.id)
      answers.push(claudeAgent.answer!(question, { choiceId: question.choices[0]!.id }))
      answers.push(claudeAgent.answer!(question, { text: 'Neither.' }))
      events.push(...parser.push(Buffer.from(`{"corral":"answered","name":"${question.name}","text":"A"}\n`), 'stdout'))
    }
    expect(parser.questions).toEqual([])
    expect(answers).toMatchObject([
      { name: 'q1', request_id: asked[0], response: { behavior: 'allow', updatedInput: { content: 'x' } } },
      { name: 'q1', request_id: asked[0], response: { behavior: 'deny', message: 'Neither.' } },
      { name: 'q2', request_id: asked[1], of: 1, question: 'Which?', label: 'A', input: { questions: [{}] } },
      { name: 'q2', request_id: asked[1], of: 1, question: 'Which?', label: 'Neither.' },
    ])
    expect(events.filter(({ type }) => type === 'question' || type === 'answer')).toEqual([
      expect.objectContaining({ type: 'question', question: 'q1', kind: 'permission', text: 'Write perm.txt' }),
      { type: 'answer', question: 'q1', text: 'A' },
      {
        ...{ type: 'question', question: 'q2', kind: 'input', text: 'Which?' },
        options: [
          { id: '1', label: 'A' },
          { id: '2', label: 'B' },
        ],
      },
      { type: 'answer', question: 'q2', text: 'A' },
    ])
    for (const event of events) agentEventSchema.parse(event)
  })

  it('a question whose call has its result was withdrawn', () => {
    const parser = claudeAgent.createParser()
    const request = { subtype: 'can_use_tool', tool_name: 'Bash', input: {}, tool_use_id: 'call' }
    parser.push(lines({ type: 'control_request', request_id: 'r', request }, { corral: 'asks', id: 'r' }), 'stdout')
    expect(parser.questions).toMatchObject([{ name: 'q1' }])
    const result = { type: 'tool_result', tool_use_id: 'call', content: 'x' }
    expect(parser.push(lines({ type: 'user', message: { content: [result] } }), 'stdout')[0]).toEqual({
      ...{ type: 'answer', question: 'q1', withdrawn: true },
    })
    expect(parser.questions).toEqual([])
  })

  it('was killed when a signal ended it', () => {
    const parser = claudeAgent.createParser()
    parser.end({ exitCode: 137, signal: 9 })
    expect(parser.verdict).toMatchObject({ ok: false, cause: 'AgentKilled' })
  })

  it('does not report a file as changed when the tool failed', () => {
    const call = { type: 'tool_use', id: 'a', name: 'Write', input: { file_path: '/x', content: '' } }
    const result = {
      type: 'tool_result',
      tool_use_id: 'a',
      is_error: true,
      content: [{ type: 'text', text: 'denied' }],
    }
    const { events } = run([
      lines({ type: 'assistant', message: { content: [call] } }, { type: 'user', message: { content: [result] } }),
    ])
    expect(events.map(short)).toEqual(['calls Write /x', 'gets an error'])
  })

  it('shows what is not its own as plain output', () => {
    const { events } = run([Buffer.from('warning: something\n{"broken\n[1]\n')])
    expect(events).toEqual(
      ['warning: something\n', '{"broken\n', '[1]\n'].map((text) => ({ type: 'output', stream: 'stdout', text })),
    )
  })

  it('leaves out a line that is far too long, and reads on', () => {
    const huge = Buffer.alloc(9 * 1024 * 1024, 'x')
    const after = lines({ type: 'assistant', message: { content: [{ type: 'text', text: 'after' }] } })
    const { events } = run([huge, Buffer.from('\n'), after])
    expect(events.map(short)).toEqual(['error', 'says after'])
  })

  it('gives the same events however the recorded output is cut', () => {
    const whole = run([success]).events
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: success.length }), { maxLength: 30 }), (cuts) => {
        const borders = [0, ...cuts.sort((a, b) => a - b), success.length]
        const chunks = borders.slice(1).map((end, i) => success.subarray(borders[i], end))
        expect(run(chunks).events).toEqual(whole)
      }),
      { numRuns: 60 },
    )
  })

  it('never throws and never breaks the vocabulary, whatever it reads', () => {
    const jsonLine = fc.json().map((text) => Buffer.from(`${text}\n`))
    const shaped = fc
      .record({
        type: fc.constantFrom('assistant', 'user', 'system', 'result', 'other'),
        message: fc.oneof(fc.jsonValue(), fc.record({ content: fc.array(fc.jsonValue()) })),
        usage: fc.jsonValue(),
        is_error: fc.jsonValue(),
        result: fc.jsonValue(),
        modelUsage: fc.jsonValue(),
        subtype: fc.constantFrom('init', 'api_retry', 'x'),
      })
      .map((object) => lines(object))
    const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array))
    fc.assert(
      fc.property(fc.array(fc.oneof(jsonLine, shaped, bytes), { maxLength: 20 }), (chunks) => {
        for (const event of run(chunks).events) expect(agentEventSchema.safeParse(event).success).toBe(true)
      }),
      { numRuns: 200 },
    )
  })
})
