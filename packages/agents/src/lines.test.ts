import { type AgentEvent, eventLimits } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import type { AgentExit, AgentVerdict } from './agent-adapter.js'
import {
  contentText,
  errorEvents,
  fileChangedEvents,
  JsonLinesParser,
  messageEvents,
  modelFailure,
  noteEvents,
  toolCallEvent,
} from './json-lines-parser.js'
import type { JsonObject } from './json-value.js'
import { LineSplitter } from './line-splitter.js'
import { OutputJoiner } from './output-joiner.js'
import { QuestionBook, readMessage } from './question-book.js'

const bytes = (text: string): Buffer => Buffer.from(text)

describe('lines', () => {
  const cut = (text: string, at: number): string[] => {
    const splitter = new LineSplitter(4)
    const pieces = [...splitter.push(bytes(text.slice(0, at))), ...splitter.push(bytes(text.slice(at)))]
    return [...pieces, ...splitter.end()].map((piece) => `${piece.text}${piece.complete ? '.' : '…'}`)
  }
  it.each([
    { what: 'whole ones', text: 'ab\ncd\n', pieces: ['ab.', 'cd.'] },
    { what: 'an unfinished last one', text: 'ab\ncd', pieces: ['ab.', 'cd.'] },
    { what: 'empty ones', text: '\n\na\n', pieces: ['.', '.', 'a.'] },
    { what: 'the ends of Windows', text: 'a\r\nb\r', pieces: ['a.', 'b.'] },
    { what: 'one of just the limit', text: 'abcd\ne\n', pieces: ['abcd.', 'e.'] },
    { what: 'one over the limit', text: 'abcde\nf\n', pieces: ['abcd…', 'e.', 'f.'] },
    { what: 'one of twice the limit and more', text: 'abcdefghi', pieces: ['abcd…', 'efgh…', 'i.'] },
  ])('$what are the same wherever the bytes were cut', ({ text, pieces }) => {
    for (let at = 0; at <= text.length; at++) expect(cut(text, at)).toEqual(pieces)
  })

  it('begin after the next line end where output was left out', () => {
    const splitter = new LineSplitter(10)
    splitter.push(bytes('before'))
    splitter.skip()
    expect(splitter.push(bytes('rest of a li'))).toEqual([])
    expect(splitter.push(bytes('ne\nwhole\n'))).toEqual([{ text: 'whole', complete: true }])
    splitter.skip()
    expect([...splitter.push(bytes('never ends')), ...splitter.end()]).toEqual([])
  })
})

class Echo extends JsonLinesParser {
  constructor() {
    super('Echo')
  }
  protected onLine(line: JsonObject): AgentEvent[] {
    return this.said(line.say)
  }
  protected judge({ exitCode }: AgentExit): AgentVerdict {
    return exitCode === 0 ? { ok: true } : { ok: false, cause: 'AgentFailed', message: 'no' }
  }
}

describe('an agent that prints JSON', () => {
  it('has not ended before its end is known', () => {
    const parser = new Echo()
    expect(parser.verdict).toEqual({ ok: false, cause: 'AgentFailed', message: 'Echo has not ended' })
    parser.end({ exitCode: 0 })
    expect(parser.verdict).toEqual({ ok: true })
  })

  it('is shown line by line: objects as what they mean, others as they are, blank ones not at all', () => {
    const parser = new Echo()
    const lines = ['{"say":"one"}', '', '  ', 'plain', '[1]', '{broken', '{"say":""}', '{"say":"two"}']
    expect(parser.push(bytes(`${lines.join('\n')}\n`), 'stdout')).toEqual([
      { type: 'message', role: 'assistant', text: 'one' },
      { type: 'output', stream: 'stdout', text: 'plain\n' },
      { type: 'output', stream: 'stdout', text: '[1]\n' },
      { type: 'output', stream: 'stdout', text: '{broken\n' },
      { type: 'message', role: 'assistant', text: 'two' },
    ])
    expect(parser.finalText).toBe('two')
    expect(parser.push(bytes('oh\n'), 'stderr')).toEqual([{ type: 'output', stream: 'stderr', text: 'oh\n' }])
    expect(parser.push(bytes('{"say":"th'), 'stdout')).toEqual([])
    expect(parser.skip()).toEqual([])
    expect(parser.push(bytes('ree"}\n{"say":"four"}'), 'stdout')).toEqual([])
    expect(parser.end({ exitCode: 1 })).toEqual([{ type: 'message', role: 'assistant', text: 'four' }])
  })

  it('loses a line of more than 4 MiB, says so once, and goes on', () => {
    const parser = new Echo()
    const long = `{"say":"${'x'.repeat(9 * 1024 * 1024)}"}\n`
    expect(parser.push(bytes(`${long}{"say":"after"}\n`), 'stdout')).toEqual([
      { type: 'error', message: 'a line of the agent was too long and is left out' },
      { type: 'message', role: 'assistant', text: 'after' },
    ])
  })
})

describe('what becomes of the fields of a line', () => {
  it.each<[string, AgentEvent[], object[]]>([
    ['no text', messageEvents(undefined), []],
    [
      'a thought',
      messageEvents('a', { thinking: true }),
      [{ type: 'message', role: 'assistant', text: 'a', thinking: true }],
    ],
    ['a note', noteEvents('a'), [{ type: 'message', role: 'system', text: 'a' }]],
    ['an empty note', noteEvents(''), []],
    ['an error', errorEvents('a'), [{ type: 'error', message: 'a' }]],
    ['an error of another type', errorEvents(7), []],
    ['a file', fileChangedEvents('a', 'deleted'), [{ type: 'file_changed', path: 'a', change: 'deleted' }]],
    ['a file without a name', fileChangedEvents('', 'edited'), []],
    ['a file that is a number', fileChangedEvents(1, 'edited'), []],
    [
      'a name of just the limit',
      fileChangedEvents('x'.repeat(eventLimits.pathCharacters), 'edited'),
      [expect.anything()],
    ],
    ['a name over the limit', fileChangedEvents('x'.repeat(eventLimits.pathCharacters + 1), 'edited'), []],
  ])('%s', (_, events, expected) => {
    expect(events).toEqual(expected)
  })

  it.each([
    ...['command', 'file_path', 'filePath', 'notebook_path', 'path', 'pattern', 'query', 'url'].map((name) => ({
      input: { prompt: 'p', [name]: 'first\nsecond' },
      summary: 'first',
    })),
    { input: { prompt: 'p', description: 'd' }, summary: 'd' },
    { input: { prompt: 'p' }, summary: 'p' },
    { input: { command: 7, path: 'a' }, summary: 'a' },
    { input: {}, summary: '' },
  ])('a call with $input is told as "$summary"', ({ input, summary }) => {
    expect(toolCallEvent('c', 'Tool', input)).toEqual({
      ...{ type: 'tool_call', call_id: 'c', tool: 'Tool' },
      ...{ summary, input: JSON.stringify(input) },
    })
  })

  it('a call without id and name has an empty and an unknown one', () => {
    expect(toolCallEvent(undefined, undefined, {})).toMatchObject({ call_id: '', tool: 'unknown' })
  })

  it('content is its texts, and the kinds of the rest', () => {
    expect(contentText('as it is')).toBe('as it is')
    expect(contentText([{ type: 'text', text: 'a' }, { type: 'image' }, { type: 'text' }, 7])).toBe(
      'a\n[image]\n\n[content]',
    )
    expect(contentText(undefined)).toBe('')
  })

  it.each([
    { status: undefined, cause: 'AgentFailed' },
    { status: 400, cause: 'ModelRefused' },
    { status: 429, cause: 'ModelUnavailable' },
    { status: 499, cause: 'ModelRefused' },
    { status: 500, cause: 'ModelUnavailable' },
  ])('a model that answered $status is $cause', ({ status, cause }) => {
    expect(modelFailure('why', status)).toEqual({ ok: false, cause, message: 'why' })
    expect(modelFailure('', status)).toMatchObject({ message: 'the agent ended with an error' })
  })
})

describe('output in events of a limited size', () => {
  const most = eventLimits.outputCharacters - 1
  const sizes = (text: string): number[] => {
    const joiner = new OutputJoiner('stdout')
    return [...joiner.push(bytes(text)), ...joiner.end()].map((event) => (event as { text: string }).text.length)
  }
  it.each([
    { what: 'a line that just fits', text: `${'x'.repeat(most - 1)}\n`, events: [most] },
    { what: 'a line one longer', text: `${'x'.repeat(most)}\n`, events: [most, 1] },
    { what: 'a character of two halves on the border', text: `${'x'.repeat(most - 1)}😀\n`, events: [most - 1, 3] },
  ])('$what', ({ text, events }) => {
    expect(sizes(text)).toEqual(events)
  })

  it('is cut behind the last line that fits where lines are joined', () => {
    const joiner = new OutputJoiner('stdout')
    joiner.skip()
    const lines = `${'x'.repeat(99)}\n`.repeat(Math.ceil((2 * most) / 100))
    const [first, second] = joiner.push(bytes(lines)).map((event) => (event as { text: string }).text)
    expect(first).toHaveLength(Math.floor(most / 100) * 100)
    expect([first?.endsWith('\n'), second?.startsWith('x'.repeat(99))]).toEqual([true, true])
  })

  it('ends a last line, and turns the ends of Windows into ours', () => {
    const joiner = new OutputJoiner('stderr')
    expect([...joiner.push(bytes('a\r\nb\r')), ...joiner.end(), ...joiner.end()]).toEqual([
      { type: 'output', stream: 'stderr', text: 'a\n' },
      { type: 'output', stream: 'stderr', text: 'b\n' },
    ])
  })
})

describe('questions', () => {
  const asked = (id: string) => ({ id, kind: 'input' as const, text: `${id}?`, choices: [{ id: '1', label: 'one' }] })
  it('are named in the order they are asked, and are over once, with or without an answer', () => {
    const book = new QuestionBook()
    book.requested('a', [asked('a'), asked('a')], 100)
    book.requested('b', [asked('b')], 100)
    expect(book.ownLine({ corral: 'asks', id: 'b' })).toEqual([
      { type: 'question', question: 'q1', kind: 'input', text: 'b?', options: [{ id: '1', label: 'one' }] },
    ])
    expect(book.ownLine({ corral: 'asks', id: 'a' }).map((event) => 'question' in event && event.question)).toEqual([
      'q2',
      'q3',
    ])
    expect(book.ownLine({ corral: 'asks', id: 'a' })).toEqual([])
    expect(book.ownLine({ corral: 'asks' })).toEqual([])
    expect(book.open.map(({ name }) => name)).toEqual(['q1', 'q2', 'q3'])
    const answered = { corral: 'answered', name: 'q2', text: 'yes' }
    expect(book.ownLine(answered)).toEqual([{ type: 'answer', question: 'q2', text: 'yes' }])
    expect(book.ownLine(answered)).toEqual([])
    expect(book.withdraw(({ id }) => id === 'a')).toEqual([{ type: 'answer', question: 'q3', withdrawn: true }])
    expect(book.open.map(({ name }) => name)).toEqual(['q1'])
    expect(book.ownLine({ corral: 'other', id: 'a' })).toEqual([])
  })

  it('are at most a hundred at once, and the oldest requests are forgotten first', () => {
    const book = new QuestionBook()
    for (let n = 0; n < 101; n++) book.requested(`r${n}`, [asked(`r${n}`)], 100)
    expect(book.ownLine({ corral: 'asks', id: 'r0' })).toEqual([])
    for (let n = 1; n < 101; n++) expect(book.ownLine({ corral: 'asks', id: `r${n}` })).toHaveLength(1)
    book.requested('late', [asked('late')], 100)
    expect(book.ownLine({ corral: 'asks', id: 'late' })).toEqual([])
    expect(book.open).toHaveLength(100)
  })

  it.each([
    { what: 'one with its id', line: { corral: 'read', id: 'm1', text: 'hi' }, id: 'm1' },
    { what: 'the longest id', line: { corral: 'read', id: 'x'.repeat(200), text: 'hi' }, id: 'x'.repeat(200) },
    { what: 'an id too long', line: { corral: 'read', id: 'x'.repeat(201) }, id: undefined },
    { what: 'an empty id', line: { corral: 'read', id: '' }, id: undefined },
    { what: 'no id', line: { corral: 'read' }, id: undefined },
    { what: 'another line', line: { corral: 'asks', id: 'm1' }, id: undefined },
  ])('a message that was read: $what', ({ line, id }) => {
    expect(readMessage(line)?.id).toBe(id)
    if (id)
      expect(readMessage(line)?.events).toEqual([
        { type: 'message', role: 'user', text: 'hi', delivery: 'steered', message_id: id },
      ])
  })
})
