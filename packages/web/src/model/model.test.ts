import { describe, expect, it } from 'vitest'
import { ansiSpans, plainText } from './ansi.js'
import { type ConnectionInput, firstState, step } from './connection.js'
import { addEvents, emptyFeed } from './feed.js'
import { keyName, noKeys, press } from './keymap.js'
import { noticesOf } from './notices.js'
import { parsePatch } from './patch.js'
import { pathOf, routeOf } from './route.js'
import { age, count, duration, files, money } from './time-words.js'
import { wordChanges } from './word-changes.js'

describe('a patch', () => {
  const patch = [
    'diff --git a/src/cart.ts b/src/cart.ts',
    'index 1111111..2222222 100644',
    '--- a/src/cart.ts',
    '+++ b/src/cart.ts',
    '@@ -14,3 +14,4 @@ export function subtotal(lines: Line[]): number {',
    ' }',
    '-  return a',
    '+  const due = a',
    '+++ looks like a header',
    ' last',
    '\\ No newline at end of file',
    'diff --git "a/sp\\303\\244t \\"x\\"" "b/sp\\303\\244t \\"x\\""',
    'new file mode 100755',
    'index 0000000..2222222',
    '--- /dev/null',
    '+++ "b/sp\\303\\244t \\"x\\""',
    '@@ -0,0 +1 @@',
    '+one',
    'diff --git a/old name b/new name',
    'similarity index 100%',
    'rename from old name',
    'rename to new name',
    'diff --git a/run.sh b/run.sh',
    'old mode 100644',
    'new mode 100755',
    'diff --git a/logo.png b/logo.png',
    'index 1..2 100644',
    'GIT binary patch',
    'literal 3',
    'Kc$~{iZgX^DZewLh0000',
    '',
    'diff --git a/gone b/gone',
    'deleted file mode 100644',
    'index 1..0',
    '--- a/gone',
    '+++ /dev/null',
    '@@ -1 +0,0 @@',
    '-bye',
    '',
  ].join('\n')
  const files = parsePatch(patch)

  it('names every file, its change and its counts', () => {
    expect(files.map(({ path, change, insertions, deletions }) => [path, change, insertions, deletions])).toEqual([
      ['src/cart.ts', 'modified', 2, 1],
      ['spät "x"', 'added', 1, 0],
      ['new name', 'renamed', 0, 0],
      ['run.sh', 'mode', 0, 0],
      ['logo.png', 'modified', 0, 0],
      ['gone', 'deleted', 0, 1],
    ])
    expect(files[2]?.from).toBe('old name')
    expect(files[3]?.modes).toEqual({ before: '100644', after: '100755' })
    expect(files.map(({ isBinary }) => isBinary)).toEqual([false, false, false, false, true, false])
  })

  it('numbers the lines of both sides, and takes no content for a header', () => {
    expect(files[0]?.hunks[0]?.lines).toEqual([
      { kind: 'context', text: '}', before: 14, after: 14 },
      { kind: 'removed', text: '  return a', before: 15 },
      { kind: 'added', text: '  const due = a', after: 15 },
      { kind: 'added', text: '++ looks like a header', after: 16 },
      { kind: 'context', text: 'last', before: 16, after: 17 },
      { kind: 'note', text: 'No newline at end of file' },
    ])
  })
})

it.each<[string, string, string, string | undefined]>([
  ['one word', 'return total(lines)', 'return sum(lines)', 'return [sum](lines)'],
  ['nothing in common', 'alpha beta', 'gamma(delta)', undefined],
  ['an addition', 'a b', 'a x b', 'a [x ]b'],
])('marks %s', (_, before, after, expected) => {
  const marked = wordChanges(before, after)?.after.map(({ text, isChanged }) => (isChanged ? `[${text}]` : text))
  expect(marked?.join('')).toBe(expected)
})

it.each<[string, string, string]>([
  ['colours', '\u001b[31mred\u001b[0m plain', 'red plain'],
  ['links and the clipboard', '\u001b]8;;http://evil\u0007text\u001b]52;c;AAAA\u001b\\!', 'text!'],
  ['cursor and screen', '\u001b[2J\u001b[1;1Hx\u001bc', 'x'],
  ['progress on one line', '10%\r50%\r100%\n', '100%\n'],
  ['control characters', 'a\u0000\u0008\u009bb', 'ab'],
])('shows text without the escapes of %s', (_, given, expected) => {
  expect(plainText(given)).toBe(expected)
})

it('gives colours of the theme to spans', () => {
  expect(ansiSpans('\u001b[1;91ma\u001b[39mb\u001b[38;5;4mc\u001b[38;2;1;2;3md')).toEqual([
    { text: 'a', color: 9, isBold: true },
    { text: 'b', isBold: true },
    { text: 'c', color: 4, isBold: true },
    { text: 'd', isBold: true },
  ])
})

describe('the feed', () => {
  const time = '2026-01-01T00:00:00Z'
  const output = (sequence: number, text: string) =>
    ({ sequence, time, type: 'output', stream: 'stdout', text }) as const

  it('joins output, drops what it knows, and puts a result to its call', () => {
    const first = addEvents(emptyFeed, [
      output(1, 'a\n'),
      output(2, 'b\n'),
      { sequence: 3, time, type: 'tool_call', call_id: 'x', tool: 'Bash', summary: 'npm test' },
      { sequence: 4, time, type: 'tool_result', call_id: 'x', is_error: true, text: 'failed' },
    ])
    expect(first.items).toMatchObject([
      { kind: 'output', text: 'a\nb\n', lines: 2 },
      { kind: 'tool', summary: 'npm test', result: { text: 'failed', isError: true } },
    ])
    expect(addEvents(first, [output(2, 'b\n'), output(1, 'a\n')])).toBe(first)
  })

  it('knows when the last line came, also of output that stays one item', () => {
    const later = '2026-01-01T00:05:00Z'
    const feed = addEvents(addEvents(emptyFeed, [output(1, 'a\n')]), [{ ...output(2, 'b\n'), time: later }])
    expect(feed).toMatchObject({ items: [{ time }], lastTime: later })
  })

  it('shows claim and set-up as done once another stage begins, and a failed set-up as failed', () => {
    const stage = (sequence: number, name: 'claim' | 'setup' | 'agent', state: 'started' | 'finished' | 'failed') =>
      ({ sequence, time, type: 'stage', stage: name, state }) as const
    const states = (...events: ReturnType<typeof stage>[]) =>
      addEvents(emptyFeed, events).items.map((item) => item.kind === 'stage' && `${item.stage} ${item.state}`)
    expect(states(stage(1, 'claim', 'started'), stage(2, 'setup', 'started'))).toEqual([
      'claim finished',
      'setup started',
    ])
    expect(states(stage(1, 'setup', 'started'), stage(2, 'agent', 'started'), stage(3, 'claim', 'started'))).toEqual([
      'setup finished',
      'agent started',
      'claim started',
    ])
    expect(states(stage(1, 'setup', 'failed'), stage(2, 'agent', 'started'))).toEqual(['setup failed', 'agent started'])
  })

  it('keeps one line for the progress of a stage', () => {
    const stage = (sequence: number, state: 'started' | 'progress' | 'finished') =>
      ({ sequence, time, type: 'stage', stage: 'repository', state, detail: `${sequence}` }) as const
    const feed = addEvents(emptyFeed, [stage(1, 'started'), stage(2, 'progress'), stage(3, 'finished')])
    expect(feed.items).toEqual([{ kind: 'stage', key: 1, stage: 'repository', state: 'finished', detail: '3', time }])
  })
})

it.each([
  '/',
  '/?view=board&q=a+b&status=FAILED&project=shop',
  '/tasks/task-1',
  '/tasks/task-1/changes',
  '/new',
  '/review',
  '/compare/g1',
  '/projects',
  '/projects/my%20shop',
  '/sandboxes',
  '/pools/default',
  '/usage',
  '/settings',
  '/settings/agents',
  '/login',
])('%s is the address of the page it leads to', (path) => {
  const route = routeOf(new URL(path, 'http://corral'))
  expect(route.page).not.toBe('missing')
  expect(pathOf(route)).toBe(path)
})

it.each(['/tasks', '/tasks/a/b', '/new/x', '/nothing', '/tasks/%E0%A4%A/x'])('%s is no page', (path) => {
  expect(routeOf(new URL(path, 'http://corral')).page).toBe('missing')
})

describe('the connection of a tab', () => {
  const input = (kind: ConnectionInput['kind'], nowMs: number): ConnectionInput => ({ kind, nowMs, random: 1 })
  const run = (inputs: readonly ConnectionInput[]) => {
    let state = firstState(0)
    const done = inputs.map((next) => {
      const [after, actions] = step(state, next)
      state = after
      return [after.phase, ...actions].join(' ')
    })
    return { state, done }
  }

  it('is dead when nothing came for 40 s, and comes back after a wait', () => {
    const { done } = run([
      input('opened', 0),
      input('beat', 30_000),
      input('timer', 69_999),
      input('timer', 70_000),
      input('timer', 70_500),
    ])
    expect(done).toEqual(['live resubscribe', 'live', 'live', 'waiting close', 'connecting open'])
  })

  it('waits twice as long after each failure, 30 s at most, and not at all when the machine is online again', () => {
    let state = firstState(0)
    const waits: number[] = []
    for (let time = 0, failure = 0; failure < 8; failure += 1) {
      ;[state] = step(state, input('failed', time))
      waits.push(state.wakeAtMs - time)
      time = state.wakeAtMs
      ;[state] = step(state, input('timer', time))
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    ;[state] = step(state, input('failed', 0))
    expect(step(state, input('online', 1))[1]).toEqual(['open'])
  })

  it('gives up a handshake after 10 s, and does not come back after a sign-out', () => {
    expect(run([input('timer', 10_000)]).done).toEqual(['waiting close'])
    expect(run([input('unauthorized', 1), input('closed', 2), input('online', 3), input('timer', 9e9)]).done).toEqual([
      'signed-out close',
      'signed-out',
      'signed-out',
      'signed-out',
    ])
  })
})

it('runs a binding of one key or of two in time', () => {
  const binding = (keys: string) => ({ keys, title: keys, run: () => undefined })
  const bindings = [binding('c'), binding('g t'), binding('mod+k')]
  const [waiting, nothing] = press(noKeys, 'g', 0, bindings)
  expect(nothing).toBeUndefined()
  expect(press(waiting, 't', 900, bindings)[1]?.keys).toBe('g t')
  expect(press(waiting, 't', 1_100, bindings)[1]).toBeUndefined()
  expect(press(waiting, 'c', 900, bindings)[1]?.keys).toBe('c')
  expect(keyName({ key: 'k', ctrlKey: true, metaKey: false, altKey: false })).toBe('mod+k')
})

it('says times, money and counts shortly', () => {
  expect([age(59_999), age(3_599_000), age(7_200_000), age(9e8)]).toEqual(['59s', '59m', '2h', '10d'])
  expect([duration(5_440), duration(11_000), duration(698_000), duration(3_600_000)]).toEqual([
    '5.4 s',
    '11 s',
    '11 m 38 s',
    '1 h 0 m',
  ])
  expect([money(0), money(0.0042), money(12.3)]).toEqual(['$0.00', '$0.0042', '$12.30'])
  expect([count(1_234), count(56_700), count(3_200_000)]).toEqual(['1,234', '56.7k', '3.2M'])
  expect([files(1), files(4)]).toEqual(['1 file', '4 files'])
})

describe('notices', () => {
  const task = (status: string, cause?: { code: string }) =>
    new Map([['t', { id: 't', title: 'Add VAT', status, ...(cause ? { cause } : {}) }]])
  it.each<[string, string | undefined, string, string | undefined]>([
    ['a plan is ready', 'RUNNING', 'WAITING_APPROVAL', 'Plan ready'],
    ['a question is asked', 'RUNNING', 'WAITING_INPUT', 'Has a question'],
    ['it is done', 'RUNNING', 'SUCCEEDED', 'Done'],
    ['it failed', 'RUNNING', 'FAILED', 'Failed: AgentFailed'],
    ['it only went on', 'QUEUED', 'RUNNING', undefined],
    ['nothing changed', 'SUCCEEDED', 'SUCCEEDED', undefined],
    ['a person cancelled it', 'RUNNING', 'CANCELLED', undefined],
    ['the page has just learnt of it', undefined, 'SUCCEEDED', undefined],
  ])('%s', (_, before, after, title) => {
    const known = before ? task(before) : new Map()
    const now = task(after, after === 'FAILED' ? { code: 'AgentFailed' } : undefined)
    expect(noticesOf(known, now).map((notice) => notice.title)).toEqual(title ? [title] : [])
  })
})
