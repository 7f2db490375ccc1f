import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { agentAdapters, findAgent } from '@corral/agents'
import { agentEventSchema } from '@corral/protocol'
import { describe, expect, it } from 'vitest'

/** Any code of a sandbox can write into the agent's output, which the platform reads for every task in one process. */
type Parser = ReturnType<NonNullable<ReturnType<typeof findAgent>>['createParser']>
const parserOf = (name: string): Parser => {
  const adapter = findAgent(name)
  if (!adapter) throw new Error(`there is no agent ${name}`)
  return adapter.createParser()
}
const push = (parser: Parser, ...lines: string[]) => parser.push(Buffer.from(`${lines.join('\n')}\n`), 'stdout')
const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
const noText = '{"toString":1,"valueOf":1}'

describe('a line that no parser can read', () => {
  it.each([...agentAdapters.keys()])('does not end the reading of %s', (name) => {
    const parser = parserOf(name)
    const lines = [
      `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"x","name":"n","input":{"a":${nested(200_000)}}}]}}`,
      `{"type":"item.started","item":{"type":"mcp_tool_call","id":"x","arguments":{"a":${nested(200_000)}}}}`,
      `{"type":"tool_use","tool_name":"x","parameters":{"a":${nested(200_000)}}}`,
      `{"id":${nested(200_000)},"method":"session/request_permission","params":{}}`,
      `{"id":${noText},"method":"item/tool/requestUserInput","params":{"questions":[{}]}}`,
      `{"type":"result","is_error":true,"errors":[${noText}]}`,
    ]
    for (const line of lines) push(parser, line)
    parser.end({ exitCode: 0 })
    expect(parser.verdict).toHaveProperty('ok')
  })

  it('is told of, and what follows is read', () => {
    const parser = parserOf('claude')
    const deep = `{"type":"assistant","message":{"content":[{"type":"tool_use","input":{"a":${nested(200_000)}}}]}}`
    const said = '{"type":"assistant","message":{"content":[{"type":"text","text":"hello"}]}}'
    expect(push(parser, deep, said)).toEqual([
      { type: 'error', message: 'a line of the agent could not be read and is left out' },
      { type: 'message', role: 'assistant', text: 'hello' },
    ])
  })
})

describe('lines that begin like JSON and are none', () => {
  it('are no longer tried after 5,000 of them, and all of them can be read', () => {
    const parser = parserOf('claude')
    const events = push(parser, ...Array.from({ length: 100_000 }, () => '{'))
    events.push(...parser.end({ exitCode: 0 }))
    const errors = events.filter(({ type }) => type === 'error')
    expect(errors).toEqual([
      { type: 'error', message: 'Claude Code printed more than 5000 lines of broken JSON: the rest is shown as text' },
    ])
    const shown = events.map((event) => (event.type === 'output' ? event.text : '')).join('')
    // The line that was one too many is told of instead of shown.
    expect(shown).toBe('{\n'.repeat(99_999))
    expect(events.length).toBeLessThan(20_000)
  })

  it('leave an agent alone that prints some of them', () => {
    const parser = parserOf('claude')
    push(parser, ...Array.from({ length: 5_000 }, () => '{'))
    push(parser, '{"type":"result","result":"done"}')
    parser.end({ exitCode: 0 })
    expect(parser.verdict).toEqual({ ok: true })
  })
})

describe('what an agent asks and reads', () => {
  const asks = (count: number): string =>
    JSON.stringify({
      type: 'control_request',
      request_id: 'r',
      request: {
        subtype: 'can_use_tool',
        input: { questions: Array.from({ length: count }, (_, n) => ({ question: `${n}` })) },
      },
    })

  it.each([
    { asked: 4, kept: 4 },
    { asked: 100_000, kept: 20 },
  ])('are $kept of $asked questions in one line', ({ asked, kept }) => {
    const parser = parserOf('claude')
    const events = push(parser, asks(asked), '{"corral":"asks","id":"r"}')
    expect(parser.questions).toHaveLength(kept)
    expect(events.filter(({ type }) => type === 'question')).toHaveLength(kept)
  })

  it.each(['claude', 'codex', 'acp'])('are a thousand messages of %s, each once', (name) => {
    const parser = parserOf(name)
    push(parser, ...Array.from({ length: 20_000 }, (_, n) => `{"corral":"read","id":"m${n >> 1}","text":""}`))
    expect(parser.read?.slice(0, 3)).toEqual(['m0', 'm1', 'm2'])
    expect(parser.read).toHaveLength(1_000)
  })
})

describe('lines that take more in memory than on paper', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const heapMegabytes = (): number => {
    collect()
    return process.memoryUsage().heapUsed / 1024 / 1024
  }
  /** Three megabytes of text, and forty once they are parsed. */
  const wide = `[${'[],'.repeat(1_000_000)}0]`

  it.each([
    {
      what: 'requests of Claude Code that nobody is asked about',
      name: 'claude',
      line: (n: number) =>
        `{"type":"control_request","request_id":"r${n}","request":{"subtype":"can_use_tool","input":{"a":${wide}}}}`,
    },
    {
      what: 'calls of an ACP agent that never end',
      name: 'acp',
      line: (n: number) =>
        `{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"c${n}","rawInput":{"a":${wide}}}}}`,
    },
  ])('are not all kept: $what', { timeout: 600_000 }, ({ name, line }) => {
    const parser = parserOf(name)
    push(parser, line(0))
    const before = heapMegabytes()
    for (let n = 1; n <= 10; n++) push(parser, line(n))
    expect(heapMegabytes() - before).toBeLessThan(100)
    expect(parser.end({ exitCode: 0 })).toEqual([])
  })

  const requests = (size: number): string[] =>
    [1, 2, 3].map((n) =>
      JSON.stringify({
        type: 'control_request',
        request_id: `r${n}`,
        request: { subtype: 'can_use_tool', tool_name: 'Write', input: { content: 'x'.repeat(size) } },
      }),
    )
  const asks = [1, 2, 3].map((n) => `{"corral":"asks","id":"r${n}"}`)
  it.each([
    { when: 'are small', size: 1_000, kept: ['q1', 'q2', 'q3'] },
    { when: 'are as long as lines may be, where the last one is kept', size: 3_000_000, kept: ['q1'] },
  ])('of three requests $kept wait for a person when they $when', ({ size, kept }) => {
    const late = parserOf('claude')
    push(late, ...requests(size), ...asks)
    expect(late.questions?.map(({ name }) => name)).toEqual(kept)
    const each = parserOf('claude')
    for (const [index, request] of requests(size).entries()) push(each, request, asks[index] ?? '')
    expect(each.questions?.map(({ name }) => name)).toEqual(kept)
  })

  it('what waits for a person fits into the record of the task', () => {
    const parser = parserOf('acp')
    const options = Array.from({ length: 20 }, () => ({ optionId: 'i'.repeat(200), name: 'n'.repeat(200) }))
    for (let n = 0; n < 100; n++)
      push(
        parser,
        JSON.stringify({ id: n, method: 'session/request_permission', params: { options } }),
        `{"corral":"asks","id":"${n}"}`,
      )
    expect(parser.questions?.length).toBeGreaterThan(10)
    expect(JSON.stringify(parser.questions).length).toBeLessThan(200_000)
  })
})

it('letters of an answer that come one by one are read at once', { timeout: 600_000 }, () => {
  const parser = parserOf('gemini')
  const letters = Buffer.from('{"type":"message","role":"assistant","content":"x"}\n'.repeat(10_000))
  const start = performance.now()
  const events = Array.from({ length: 40 }, () => parser.push(letters, 'stdout')).flat()
  expect(performance.now() - start).toBeLessThan(20_000)
  events.push(...parser.push(Buffer.from('{"type":"message","role":"assistant","content":"y\\n"}\n'), 'stdout'))
  events.push(...parser.push(Buffer.from('{"type":"message","role":"assistant","content":"\\nz"}\n'), 'stdout'))
  events.push(...parser.end({ exitCode: 0 }))
  const said = events.map((event) => (event.type === 'message' ? event.text : '')).join('|')
  expect(said.replaceAll(/x+/g, 'x')).toBe('x|x|x|x|x|x|xy|z')
})

describe('counts and kinds that are none', () => {
  const line = {
    codex: `{"type":"item.completed","item":{"type":"file_change","status":"completed","changes":[{"path":"a","kind":"constructor"},{"path":"b","kind":"__proto__"}]}}`,
    opencode: `{"type":"step_finish","part":{"reason":"${'r'.repeat(3_000_000)}","tokens":{"input":${Number.MAX_SAFE_INTEGER},"output":${Number.MAX_SAFE_INTEGER},"reasoning":1}}}`,
  }
  it.each(['codex', 'opencode'] as const)('of %s still give events that every client can read', (name) => {
    const parser = parserOf(name)
    const events = [...push(parser, line[name]), ...push(parser, line[name])]
    expect(events.length).toBeGreaterThan(1)
    for (const event of events) expect(agentEventSchema.parse(event)).toEqual(event)
    parser.end({ exitCode: 0 })
    expect(JSON.stringify(parser.verdict).length).toBeLessThan(1_000)
  })
})
