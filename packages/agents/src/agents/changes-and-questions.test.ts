import type { AgentEvent } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { play } from './play-lines.test-suite.js'

describe('files that were changed are those whose calls succeeded', () => {
  const claudeCall = (id: string, name: string, input: object) => ({
    type: 'assistant',
    message: { content: [{ type: 'tool_use', id, name, input }] },
  })
  const claudeResult = (id: string, isError = false) => ({
    type: 'user',
    message: { content: [{ type: 'tool_result', tool_use_id: id, is_error: isError, content: 'x' }] },
  })
  const changed = (events: AgentEvent[]) =>
    events.flatMap((event) => (event.type === 'file_changed' ? [`${event.change} ${event.path}`] : []))

  it.each([
    { tool: 'Write', input: { file_path: 'a' }, file: ['written a'] },
    { tool: 'Edit', input: { file_path: 'a' }, file: ['edited a'] },
    { tool: 'MultiEdit', input: { file_path: 'a' }, file: ['edited a'] },
    { tool: 'NotebookEdit', input: { notebook_path: 'a' }, file: ['edited a'] },
    { tool: 'Read', input: { file_path: 'a' }, file: [] },
    { tool: 'Write', input: {}, file: [] },
  ])('Claude Code, $tool of $input', ({ tool, input, file }) => {
    expect(
      changed(play('claude', [claudeCall('c', tool, input), claudeResult('c'), claudeResult('c')]).events),
    ).toEqual(file)
    expect(changed(play('claude', [claudeCall('c', tool, input), claudeResult('c', true)]).events)).toEqual([])
  })

  it.each([
    { tool: 'write_file', file: ['written a'] },
    { tool: 'replace', file: ['edited a'] },
    { tool: 'read_file', file: [] },
    { tool: 'toString', file: [] },
  ])('Gemini, $tool', ({ tool, file }) => {
    const call = { type: 'tool_use', tool_id: 't', tool_name: tool, parameters: { file_path: 'a' } }
    const result = (status: string) => ({ type: 'tool_result', tool_id: 't', status })
    expect(changed(play('gemini', [call, result('success'), result('success')]).events)).toEqual(file)
    expect(changed(play('gemini', [call, result('error')]).events)).toEqual([])
  })

  it.each([
    { tool: 'write', state: { status: 'completed' }, file: ['written a'] },
    { tool: 'edit', state: { status: 'completed', metadata: { exit: 0 } }, file: ['edited a'] },
    { tool: 'edit', state: { status: 'completed', metadata: { exit: 1 } }, file: [] },
    { tool: 'edit', state: { status: 'error' }, file: [] },
    { tool: 'bash', state: { status: 'completed' }, file: [] },
    { tool: 'toString', state: { status: 'completed' }, file: [] },
  ])('OpenCode, $tool with $state', ({ tool, state, file }) => {
    const part = { callID: 'c', tool, state: { input: { filePath: 'a' }, ...state } }
    expect(changed(play('opencode', [{ type: 'tool_use', part }]).events)).toEqual(file)
  })

  it('a thousand calls are kept in mind, however many are open', () => {
    const names = Array.from({ length: 1_001 }, (_, n) => `c${n}`)
    const claude = [
      ...names.map((name) => claudeCall(name, 'Write', { file_path: name })),
      ...names.map((name) => claudeResult(name)),
    ]
    expect(changed(play('claude', claude).events)).toHaveLength(1_000)
    const gemini = [
      ...names.map((name) => ({
        type: 'tool_use',
        tool_id: name,
        tool_name: 'replace',
        parameters: { file_path: name },
      })),
      ...names.map((name) => ({ type: 'tool_result', tool_id: name, status: 'success' })),
    ]
    expect(changed(play('gemini', gemini).events)).toHaveLength(1_000)
  })

  it('of Codex by what it says of each', () => {
    const change = (kind: unknown) => ({ path: `${kind}.ts`, kind })
    const item = {
      type: 'file_change',
      status: 'completed',
      changes: ['add', 'update', 'delete', 'move', 7].map(change),
    }
    const { events } = play('codex', [{ type: 'item.completed', item }])
    expect(changed(events)).toEqual([
      'written add.ts',
      'edited update.ts',
      'deleted delete.ts',
      'edited move.ts',
      'edited 7.ts',
    ])
    expect(play('codex', [{ type: 'item.completed', item: { ...item, status: 'failed' } }]).events).toEqual([])
  })
})

describe('questions that are settled elsewhere are withdrawn', () => {
  const ask = (id: string, call: string) => [
    {
      type: 'control_request',
      request_id: id,
      request: { subtype: 'can_use_tool', tool_name: 'Bash', tool_use_id: call, input: {} },
    },
    { corral: 'asks', id },
  ]
  const result = {
    type: 'user',
    message: { content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'x' }] },
  }
  it('Claude Code: those of a call that has its result, or that it takes back', () => {
    const { parser, events } = play('claude', [...ask('r1', 'c1'), ...ask('r2', 'c2'), result])
    expect(parser.questions?.map(({ id }) => id)).toEqual(['r2'])
    expect(events.at(-2)).toEqual({ type: 'answer', question: 'q1', withdrawn: true })
    const cancelled = play('claude', [
      ...ask('r1', 'c1'),
      ...ask('r2', 'c2'),
      { type: 'control_cancel_request', request_id: 'r1' },
    ])
    expect(cancelled.parser.questions?.map(({ id }) => id)).toEqual(['r2'])
  })

  it('Codex: those whose request is resolved', () => {
    const asks = (id: number) => [
      { id, method: 'item/fileChange/requestApproval', params: { itemId: 'c' } },
      { corral: 'asks', id: String(id) },
    ]
    const { parser } = play('codex', [
      ...asks(1),
      ...asks(2),
      { method: 'serverRequest/resolved', params: { requestId: 1 } },
    ])
    expect(parser.questions?.map(({ id }) => id)).toEqual(['2'])
  })
})
