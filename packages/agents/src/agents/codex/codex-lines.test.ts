import { describe, expect, it } from 'vitest'
import { play } from '../play-lines.test-suite.js'
import { execLineOf } from './app-server-lines.js'

describe('a notification of `codex app-server` as a line of `codex exec`', () => {
  const item = (type: string, more: object = {}) => ({
    method: 'item/completed',
    params: { item: { id: 'i', type, ...more } },
  })
  it.each([
    ['agentMessage', 'agent_message'],
    ['collabAgentToolCall', 'collab_tool_call'],
    ['commandExecution', 'command_execution'],
    ['fileChange', 'file_change'],
    ['mcpToolCall', 'mcp_tool_call'],
    ['reasoning', 'reasoning'],
    ['webSearch', 'web_search'],
  ])('an item %s is %s', (type, name) => {
    expect(execLineOf(item(type, { aggregatedOutput: 'o', exitCode: 3 }))).toMatchObject({
      type: 'item.completed',
      item: { id: 'i', type: name, aggregated_output: 'o', exit_code: 3 },
    })
    expect(execLineOf({ ...item(type), method: 'item/started' })).toMatchObject({ type: 'item.started' })
  })

  it.each<[string, object, object | undefined]>([
    ['an item nothing is known of', item('todoList'), undefined],
    ['an item without a type', { method: 'item/completed', params: {} }, undefined],
    [
      'a warning',
      { method: 'warning', params: { message: 'm' } },
      { type: 'item.completed', item: { type: 'error', message: 'm' } },
    ],
    [
      'an error with its reason',
      { method: 'error', params: { error: { message: 'm', additionalDetails: 'd' } } },
      { type: 'error', message: 'm: d' },
    ],
    ['an error without one', { method: 'error', params: { error: { message: 'm' } } }, { type: 'error', message: 'm' }],
    ['an error of nothing', { method: 'error' }, { type: 'error', message: '' }],
    ['a turn', { method: 'turn/completed', params: { turn: { status: 'completed' } } }, { type: 'turn.completed' }],
    [
      'a turn that failed',
      { method: 'turn/completed', params: { turn: { status: 'failed', error: { message: 'm' } } } },
      { type: 'turn.failed', error: { message: 'm' } },
    ],
    [
      'a turn that was stopped',
      { method: 'turn/completed', params: { turn: { status: 'interrupted' } } },
      { type: 'turn.failed', error: { message: 'its turn was interrupted' } },
    ],
    [
      'counts',
      {
        method: 'thread/tokenUsage/updated',
        params: {
          tokenUsage: { total: { inputTokens: 1, cachedInputTokens: 2, cacheWriteInputTokens: 3, outputTokens: 4 } },
        },
      },
      {
        type: 'corral.usage',
        usage: { input_tokens: 1, cached_input_tokens: 2, cache_write_input_tokens: 3, output_tokens: 4 },
      },
    ],
    ['another notification', { method: 'thread/started' }, undefined],
  ])('%s', (_, notification, line) => {
    expect(execLineOf(notification as Record<string, unknown>)).toEqual(line)
  })

  it('thoughts are their summary and their text, changes have the kind inside', () => {
    expect(execLineOf(item('reasoning', { summary: ['a'], content: ['b'] }))).toMatchObject({
      item: { text: 'a\n\nb' },
    })
    expect(
      execLineOf(item('fileChange', { changes: [{ kind: { type: 'add' } }, { kind: 'update' }, 7] })),
    ).toMatchObject({
      item: { changes: [{ kind: 'add' }, { kind: 'update' }, { kind: undefined }] },
    })
  })
})

describe('calls of Codex', () => {
  const started = (item: object) => play('codex', [{ type: 'item.started', item: { id: 'i', ...item } }]).events
  const completed = (item: object) => play('codex', [{ type: 'item.completed', item: { id: 'i', ...item } }]).events
  it.each<[object, string, string]>([
    [{ type: 'command_execution', command: 'ls' }, 'shell', '{"command":"ls"}'],
    [{ type: 'command_execution' }, 'shell', '{"command":""}'],
    [{ type: 'mcp_tool_call', server: 's', tool: 't', arguments: { a: 1 } }, 's.t', '{"a":1}'],
    [{ type: 'mcp_tool_call', server: 's', tool: 't' }, 's.t', '{}'],
    [{ type: 'collab_tool_call', tool: 'spawn', prompt: 'p' }, 'spawn', '{"prompt":"p"}'],
    [{ type: 'collab_tool_call', tool: 'wait' }, 'wait', '{"prompt":""}'],
    [{ type: 'web_search', query: 'q' }, 'web_search', '{"query":"q"}'],
    [{ type: 'web_search' }, 'web_search', '{"query":""}'],
  ])('%j begin', (item, tool, input) => {
    expect(started(item)).toMatchObject([{ type: 'tool_call', call_id: 'i', tool, input }])
  })

  it.each<[object, string, boolean]>([
    [{ type: 'command_execution', aggregated_output: 'o', exit_code: 0 }, 'o', false],
    [{ type: 'command_execution', exit_code: 1 }, '', true],
    [{ type: 'mcp_tool_call', status: 'completed', result: { content: 'r' } }, 'r', false],
    [{ type: 'mcp_tool_call', status: 'failed', error: { message: 'e' } }, 'e', true],
    [{ type: 'mcp_tool_call', status: 'failed' }, '', true],
    [{ type: 'collab_tool_call', status: 'completed' }, 'completed', false],
    [{ type: 'web_search', status: 'failed' }, 'failed', true],
    [{ type: 'web_search' }, '', false],
  ])('%j end', (item, text, isError) => {
    expect(completed(item)).toEqual([{ type: 'tool_result', call_id: 'i', is_error: isError, text }])
  })

  it('other items are nothing, thoughts and remarks are messages', () => {
    expect([...started({ type: 'reasoning' }), ...completed({ type: 'todo_list' })]).toEqual([])
    expect(completed({ type: 'reasoning', text: 'hm' })).toMatchObject([{ role: 'assistant', thinking: true }])
    expect(completed({ type: 'error', message: 'note' })).toMatchObject([{ role: 'system', text: 'note' }])
  })

  it('tokens that were cached are counted apart, and never less than none', () => {
    const usage = (counts: object) => play('codex', [{ type: 'turn.completed', usage: counts }]).events
    expect(usage({ input_tokens: 10, cached_input_tokens: 4, cache_write_input_tokens: 3, output_tokens: 2 })).toEqual([
      { type: 'usage', scope: 'total', input_tokens: 6, output_tokens: 2, cache_read_tokens: 4, cache_write_tokens: 3 },
    ])
    expect(usage({ input_tokens: 1, cached_input_tokens: 4 })).toMatchObject([
      { input_tokens: 0, cache_read_tokens: 4 },
    ])
  })
})
