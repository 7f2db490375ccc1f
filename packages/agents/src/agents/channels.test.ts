import { describe, expect, it } from 'vitest'
import type { AgentAnswer, AgentQuestion } from '../agent-adapter.js'
import * as acp from './acp/acp-channel.js'
import * as claude from './claude/claude-channel.js'
import * as codex from './codex/codex-channel.js'

// What an agent asks, as the user sees it, and what it hears of the answer.

const question = (more: Partial<AgentQuestion>): AgentQuestion => ({
  ...{ id: 'r1', name: 'q1', kind: 'input', text: 'Which?', choices: [{ id: '1', label: 'one' }] },
  ...more,
})
const permission = (...choices: AgentQuestion['choices']) => question({ kind: 'permission', choices })
const yes = { id: 'allow', label: 'Allow', allows: true }
const no = { id: 'deny', label: 'Deny', allows: false }

describe('an answer', () => {
  const form = (type: string, more: object = {}) =>
    question({ payload: { field: 'f', of: 2, type, ...more }, choices: [] })
  it.each<{ to: string; entry: typeof acp.answerEntry; question: AgentQuestion; answer: AgentAnswer; hears: object }>([
    {
      to: 'Claude Code, an option',
      entry: claude.answerEntry,
      question: question({ payload: { question: 'Which?', of: 2, input: { a: 1 } } }),
      answer: { choiceId: '1' },
      hears: { request_id: 'r1', label: 'one', question: 'Which?', of: 2, input: { a: 1 } },
    },
    {
      to: 'Claude Code, words, where the request said little',
      entry: claude.answerEntry,
      question: question({}),
      answer: { text: 'both' },
      hears: { request_id: 'r1', label: 'both', question: undefined, of: 1, input: {} },
    },
    {
      to: 'Claude Code, a permission',
      entry: claude.answerEntry,
      question: { ...permission(yes, no), payload: { input: { command: 'ls' } } },
      answer: { choiceId: 'allow' },
      hears: { request_id: 'r1', label: 'Allow', response: { behavior: 'allow', updatedInput: { command: 'ls' } } },
    },
    {
      to: 'Claude Code, no permission',
      entry: claude.answerEntry,
      question: permission(yes, no),
      answer: { choiceId: 'deny' },
      hears: { request_id: 'r1', label: 'Deny', response: { behavior: 'deny', message: 'The user said no.' } },
    },
    {
      to: 'Claude Code, no permission and why',
      entry: claude.answerEntry,
      question: permission(yes, no),
      answer: { text: 'not today' },
      hears: { request_id: 'r1', label: 'not today', response: { behavior: 'deny', message: 'not today' } },
    },
    {
      to: 'Claude Code, nothing',
      entry: claude.answerEntry,
      question: permission(yes, no),
      answer: {},
      hears: { request_id: 'r1', label: '', response: { behavior: 'deny', message: 'The user said no.' } },
    },
    {
      to: 'Codex, an option',
      entry: codex.answerEntry,
      question: question({ payload: { question: 'a', of: 3 } }),
      answer: { choiceId: '1' },
      hears: { request_id: 'r1', label: 'one', question: 'a', of: 3 },
    },
    {
      to: 'Codex, words, where the request said little',
      entry: codex.answerEntry,
      question: question({}),
      answer: { text: 'both' },
      hears: { request_id: 'r1', label: 'both', question: undefined, of: 1 },
    },
    {
      to: 'Codex, a permission',
      entry: codex.answerEntry,
      question: permission({ ...yes, id: 'accept' }, no),
      answer: { choiceId: 'accept' },
      hears: { request_id: 'r1', label: 'Allow', decision: 'accept' },
    },
    {
      to: 'Codex, an option that was not offered',
      entry: codex.answerEntry,
      question: permission(yes, no),
      answer: { choiceId: 'acceptForSession' },
      hears: { request_id: 'r1', label: '', decision: 'decline' },
    },
    {
      to: 'an ACP agent, a permission',
      entry: acp.answerEntry,
      question: permission(yes, no),
      answer: { choiceId: 'deny' },
      hears: { id: 'r1', label: 'Deny', optionId: 'deny' },
    },
    {
      to: 'an ACP agent, a field without its count',
      entry: acp.answerEntry,
      question: question({ payload: { field: 'f' } }),
      answer: { choiceId: '1' },
      hears: { id: 'r1', label: 'one', field: 'f', of: 1, value: '1' },
    },
    {
      to: 'an ACP agent, nothing',
      entry: acp.answerEntry,
      question: form('string'),
      answer: {},
      hears: { id: 'r1', label: '', field: 'f', of: 2, value: '' },
    },
    ...(
      [
        ['boolean', 'Yes', true],
        ['boolean', 'y', true],
        ['boolean', 'true', true],
        ['boolean', 'yesterday', false],
        ['boolean', 'oh yes', false],
        ['array', 'a, b', ['a', 'b']],
        ['number', '1.5', 1.5],
        ['integer', '7', 7],
        ['integer', 'seven', 'seven'],
        ['integer', ' ', ' '],
        ['string', '7', '7'],
      ] as const
    ).map(([type, text, value]) => ({
      to: `an ACP agent, "${text}" as ${type}`,
      entry: acp.answerEntry,
      question: form(type),
      answer: { text },
      hears: { id: 'r1', label: text, field: 'f', of: 2, value },
    })),
  ])('to $to', ({ entry, question: asked, answer, hears }) => {
    expect(entry(asked, answer)).toEqual({ kind: 'answer', name: 'q1', ...hears })
  })
})

describe('a request of Claude Code', () => {
  const asks = (request: object, request_id: unknown = 'r1') =>
    claude.questionsOf({ type: 'control_request', request_id, request })
  const tool = {
    subtype: 'can_use_tool',
    tool_name: 'Bash',
    tool_use_id: 'c',
    input: { command: 'ls' },
    description: 'List',
  }
  it('for a permission names the tool and what it is for', () => {
    const allowed = {
      id: 'r1',
      kind: 'permission',
      callId: 'c',
      payload: { input: { command: 'ls' } },
      choices: [yes, no],
    }
    expect(asks(tool)).toEqual([{ ...allowed, text: 'Bash List' }])
    expect(asks({ ...tool, description: 7 })).toEqual([{ ...allowed, text: 'Bash' }])
    expect(asks({ ...tool, tool_name: 7, description: undefined })).toEqual([{ ...allowed, text: 'A tool' }])
    expect(asks({ ...tool, input: 7 })).toMatchObject([{ payload: { input: {} } }])
  })

  it('with questions is each of them, the same text counted once', () => {
    const option = (label: unknown) => ({ label })
    const questions = [{ question: 'A?', options: [option('x'), option(7)] }, { question: 'A?' }, 7]
    const input = { questions }
    expect(asks({ ...tool, input })).toEqual([
      {
        ...{ id: 'r1', kind: 'input', callId: 'c', text: 'A?', payload: { input, of: 2, question: 'A?' } },
        choices: [
          { id: '1', label: 'x' },
          { id: '2', label: '' },
        ],
      },
      { id: 'r1', kind: 'input', callId: 'c', text: 'A?', payload: { input, of: 2, question: 'A?' }, choices: [] },
      { id: 'r1', kind: 'input', callId: 'c', text: '', payload: { input, of: 2, question: undefined }, choices: [] },
    ])
    const many = { questions: [{ question: 'A?', options: Array.from({ length: 51 }, () => option('x')) }] }
    expect(asks({ ...tool, input: many })[0]?.choices).toHaveLength(50)
  })

  it('of another kind, without an id or with one too long is no question', () => {
    expect(asks({ ...tool, subtype: 'hook_callback' })).toEqual([])
    expect(asks(tool, 7)).toEqual([])
    expect(asks(tool, 'x'.repeat(200))).toHaveLength(1)
    expect(asks(tool, 'x'.repeat(201))).toEqual([])
  })
})

describe('a request of Codex', () => {
  const asks = (method: string, params: object) => codex.questionsOf({ id: 7, method, params })
  const choices = [
    { id: 'accept', label: 'Allow', allows: true },
    { id: 'decline', label: 'Deny', allows: false },
  ]
  const forSession = { id: 'acceptForSession', label: 'Allow for this session', allows: true }
  it.each([
    { method: 'commandExecution', params: { itemId: 'c', command: 'ls', reason: 'why' }, text: 'ls' },
    { method: 'commandExecution', params: { itemId: 'c', reason: 'why' }, text: 'why' },
    { method: 'commandExecution', params: { itemId: 'c' }, text: 'A command' },
    { method: 'fileChange', params: { itemId: 'c', reason: 'why', command: 'ls' }, text: 'why' },
    { method: 'fileChange', params: { itemId: 'c' }, text: 'A change of files' },
  ])('for $method with $params asks "$text"', ({ method, params, text }) => {
    expect(asks(`item/${method}/requestApproval`, params)).toEqual([
      { id: '7', kind: 'permission', callId: 'c', text, choices },
    ])
  })

  it('offers the whole session only where Codex does', () => {
    const params = { availableDecisions: ['accept', 'acceptForSession'] }
    expect(asks('item/fileChange/requestApproval', params)[0]?.choices).toEqual([choices[0], forSession, choices[1]])
  })

  it('for input is each question, at most twenty of fifty options', () => {
    const one = { id: 'a', question: 'A?', options: [{ label: 'x' }, 7] }
    const asked = asks('item/tool/requestUserInput', { itemId: 'c', questions: [one, { id: 'b' }, one] })
    const parts = { id: '7', kind: 'input', callId: 'c' }
    const first = {
      ...parts,
      ...{ text: 'A?', payload: { question: 'a', of: 2 } },
      choices: [
        { id: '1', label: 'x' },
        { id: '2', label: '' },
      ],
    }
    expect(asked).toEqual([first, { ...parts, text: '', payload: { question: 'b', of: 2 }, choices: [] }, first])
    const many = Array.from({ length: 21 }, () => ({
      ...one,
      options: Array.from({ length: 51 }, () => ({ label: 'x' })),
    }))
    const limited = asks('item/tool/requestUserInput', { questions: many })
    expect([limited.length, limited[0]?.choices.length]).toEqual([20, 50])
    expect(asks('item/other', { questions: [one] })).toEqual([])
  })
})

describe('a request of an ACP agent', () => {
  const asks = (method: string, params: object) => acp.questionsOf({ id: 7, method, params })
  it('for a permission has the options of the agent, and allows with those that say so', () => {
    const options = [
      { optionId: 'a', name: 'Once', kind: 'allow_once' },
      { optionId: 'r', name: 'No', kind: 'reject_once' },
      {},
    ]
    const toolCall = { toolCallId: 'c', title: 'Write a file' }
    const choices = [
      { id: 'a', label: 'Once', allows: true },
      { id: 'r', label: 'No', allows: false },
      { id: '', label: '', allows: false },
    ]
    expect(asks('session/request_permission', { toolCall, options })).toEqual([
      { id: '7', kind: 'permission', callId: 'c', text: 'Write a file', choices },
    ])
    const many = Array.from({ length: 21 }, () => options[0])
    expect(asks('session/request_permission', { options: many })).toMatchObject([
      { text: 'The agent asks for permission', choices: { length: 20 } },
    ])
  })

  it.each<{ what: string; property: object; text: string; type: string | undefined; choices: object[] }>([
    { what: 'text', property: { type: 'string' }, text: 'Tell me', type: 'string', choices: [] },
    {
      what: 'yes or no',
      property: { type: 'boolean' },
      text: 'Tell me',
      type: 'boolean',
      choices: [
        { id: 'true', label: 'Yes' },
        { id: 'false', label: 'No' },
      ],
    },
    {
      what: 'one of several',
      property: { type: 'string', enum: ['x', 7] },
      text: 'Tell me',
      type: 'string',
      choices: [
        { id: 'x', label: 'x' },
        { id: '', label: '' },
      ],
    },
    {
      what: 'one of several with titles',
      property: { oneOf: [{ const: 'x', title: 'X' }, { const: 'y' }, 7] },
      text: 'Tell me',
      type: undefined,
      choices: [
        { id: 'x', label: 'X' },
        { id: 'y', label: 'y' },
        { id: '', label: '' },
      ],
    },
    {
      what: 'some of several',
      property: { type: 'array', items: { anyOf: [{ const: 'x', title: 'X' }] } },
      text: 'Tell me',
      type: 'array',
      choices: [{ id: 'x', label: 'X' }],
    },
  ])('for $what', ({ property, text, type, choices }) => {
    const params = {
      mode: 'form',
      message: 'Tell me',
      toolCallId: 'c',
      requestedSchema: { properties: { f: property } },
    }
    expect(asks('elicitation/create', params)).toEqual([
      { id: '7', kind: 'input', callId: 'c', text, payload: { field: 'f', of: 1, type }, choices },
    ])
  })

  it('for several things names each below the message', () => {
    const properties = { a: { title: 'The A', description: 'd' }, b: { description: 'The B' }, c: 7 }
    const asked = asks('elicitation/create', { mode: 'form', requestedSchema: { properties } })
    expect(asked.map(({ text }) => text)).toEqual([
      'The agent asks for input\nThe A',
      'The agent asks for input\nThe B',
      'The agent asks for input\nc',
    ])
    expect(asks('elicitation/create', { mode: 'url', requestedSchema: { properties } })).toEqual([])
    expect(asks('fs/read_text_file', { mode: 'form', requestedSchema: { properties } })).toEqual([])
    expect(asks('elicitation/create', { mode: 'form' })).toEqual([])
  })
})
