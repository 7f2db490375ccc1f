import { agentAdapters, findAgent } from '@corral/agents'
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
