import type { AgentEvent } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { play } from '../play-lines.test-suite.js'

const kinds = (events: AgentEvent[]): string[] => events.map(({ type }) => type)

describe('a call of an ACP agent', () => {
  const update = (more: object, sessionUpdate = 'tool_call_update') => ({
    method: 'session/update',
    params: { update: { sessionUpdate, toolCallId: 'c', ...more } },
  })
  const call = (input: object, tool = 'Edit it') => ({
    type: 'tool_call',
    call_id: 'c',
    tool,
    input: JSON.stringify(input),
  })
  it('is told once, when its arguments are there, and ends with its result and its files', () => {
    const { events } = play('acp', [
      update({ title: 'Edit it', kind: 'edit', rawInput: {} }, 'tool_call'),
      update({ rawInput: { a: 1 }, locations: [{ path: 'x' }, { path: 'x' }, 7] }),
      update({ rawInput: {} }),
      update({ status: 'completed', content: [{ content: { text: 'one' } }, 7, { content: { text: 'two' } }] }),
      update({ status: 'completed', rawOutput: 'late' }),
    ])
    expect(events).toEqual([
      { ...call({ a: 1 }), summary: '' },
      { type: 'tool_result', call_id: 'c', is_error: false, text: 'one\ntwo' },
      { type: 'file_changed', path: 'x', change: 'edited' },
      { ...call({}, ''), summary: '' },
      { type: 'tool_result', call_id: 'c', is_error: false, text: 'late' },
    ])
  })

  it.each([
    { what: 'a text', rawOutput: 'x', text: 'x' },
    { what: 'an output', rawOutput: { output: 'y' }, text: 'y' },
    { what: 'something else', rawOutput: { n: 1 }, text: '{"n":1}' },
    { what: 'nothing', rawOutput: undefined, text: '' },
  ])('ends with $what, and names its kind where it has no title', ({ rawOutput, text }) => {
    const { events } = play('acp', [update({ kind: 'execute', status: 'failed', rawOutput })])
    expect(events).toEqual([
      { ...call({}, 'execute'), summary: '' },
      { type: 'tool_result', call_id: 'c', is_error: true, text },
    ])
  })

  it('changes the files of its diffs when it edits, and none when it failed or reads', () => {
    const content = [
      { type: 'diff', path: 'd' },
      { type: 'content', path: 'no' },
    ]
    const files = (more: object) =>
      play('acp', [update({ content, status: 'completed', kind: 'edit', ...more })]).events.flatMap((event) =>
        event.type === 'file_changed' ? [event.path] : [],
      )
    expect(files({})).toEqual(['d'])
    expect(files({ status: 'failed' })).toEqual([])
    expect(files({ kind: 'read' })).toEqual([])
    expect(files({ content: [], locations: Array.from({ length: 101 }, (_, n) => ({ path: `p${n}` })) })).toHaveLength(
      100,
    )
  })

  it('is kept in mind among a thousand, and one more is told at its end without its arguments', () => {
    const begin = (n: number) => update({ toolCallId: `c${n}`, title: `call ${n}` }, 'tool_call')
    const end = (n: number) => update({ toolCallId: `c${n}`, status: 'completed' })
    const lines = [...Array.from({ length: 1_001 }, (_, n) => begin(n)), end(999), end(1_000)]
    const told = play('acp', lines).events.flatMap((event) => (event.type === 'tool_call' ? [event.tool] : []))
    expect(told).toEqual(['call 999', ''])
  })

  it('speech comes in paragraphs, thoughts apart, and the last answer is the final text', () => {
    const say = (text: string, sessionUpdate = 'agent_message_chunk') => ({
      method: 'session/update',
      params: { update: { sessionUpdate, content: { text } } },
    })
    const { events, parser } = play('acp', [
      say('hm', 'agent_thought_chunk'),
      say('One'),
      say('.\n\nTwo'),
      update({ status: 'completed' }),
      say('Three.\n\nFour.'),
      { method: 'session/update', params: { update: { sessionUpdate: 'available_commands_update' } } },
    ])
    expect(
      events.flatMap((event) => (event.type === 'message' ? [`${event.thinking ? '…' : ''}${event.text}`] : [])),
    ).toEqual(['…hm', 'One.', 'Two', 'Three.', 'Four.'])
    expect(kinds(events)).toEqual(['message', 'message', 'message', 'tool_call', 'tool_result', 'message', 'message'])
    expect(parser.finalText).toBe('Three.\n\nFour.')
  })
})
