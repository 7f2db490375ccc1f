import type { TaskSummary } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { placeOf, reviewMessage } from './comments.js'
import { draftProblem, emptyDraft, isDraft, requestOf } from './draft.js'
import { matches } from './filter.js'
import { highlight, languageOf } from './highlight.js'
import { stagesOf } from './stages.js'
import { hasEnded, repositoryName, statusWord } from './status-words.js'
import { days, successOf, usageBy } from './usage.js'

describe('a draft of a task', () => {
  const draft = { ...emptyDraft, repo: ' /repo ', task: 'Do it' }

  it.each([
    { when: 'nothing is typed', change: { repo: '', task: '' }, takesCommand: false, says: 'Name a repository.' },
    { when: 'the prompt is blank', change: { task: ' \n' }, takesCommand: false, says: 'Say what should be done.' },
    { when: 'the command is missing', change: {}, takesCommand: true, says: 'Give the command line.' },
    {
      when: 'the budget is no amount',
      change: { limit: 'two' },
      takesCommand: false,
      says: 'The budget is an amount such as 2.50.',
    },
    { when: 'all is there', change: {}, takesCommand: false, says: undefined },
  ])('when $when', ({ change, takesCommand, says }) => {
    expect(draftProblem({ ...draft, ...change }, takesCommand)).toBe(says)
  })

  it('sends only what was typed', () => {
    expect(requestOf(draft, false)).toEqual({ repo: '/repo', task: 'Do it' })
    const whole = {
      ...draft,
      agent: 'shell',
      command: 'make',
      base: 'main',
      branch: 'b',
      limit: '2.5',
      egress: 'a.example:443, b.example:80',
      setup: 'npm ci',
    }
    expect(requestOf(whole, true)).toEqual({
      repo: '/repo',
      task: 'Do it',
      agent: { name: 'shell', command: 'make' },
      base_branch: 'main',
      new_branch: 'b',
      limits: { max_cost_usd: 2.5 },
      egress: ['a.example:443', 'b.example:80'],
      setup: 'npm ci',
    })
  })

  it('takes nothing else out of the storage of a browser', () => {
    expect(isDraft(emptyDraft)).toBe(true)
    for (const other of [null, 7, 'x', {}, { ...emptyDraft, repo: 3 }]) expect(isDraft(other)).toBe(false)
  })
})

describe('the way of a task', () => {
  const at = (second: number): string => new Date(second * 1000).toISOString()
  const states = (task: Parameters<typeof stagesOf>[0], failed?: string) =>
    stagesOf(task, failed).map(({ stage, state }) => `${stage} ${state}`)

  it('shows what is done, what goes on and what waits', () => {
    const times = { provisioning_at: at(1), sandbox_ready_at: at(2) }
    expect(states({ status: 'PROVISIONING', times })).toEqual([
      'sandbox done',
      'repository active',
      'setup waiting',
      'agent waiting',
      'result waiting',
      'push waiting',
    ])
    expect(states({ status: 'QUEUED' })[0]).toBe('sandbox waiting')
  })

  it('shows where it failed, and nothing as going on after the end', () => {
    const times = { provisioning_at: at(1), sandbox_ready_at: at(2) }
    expect(states({ status: 'FAILED', times }, 'repository')).toEqual([
      'sandbox done',
      'repository failed',
      'setup skipped',
      'agent skipped',
      'result skipped',
      'push skipped',
    ])
  })
})

describe('colours of code', () => {
  const kinds = (line: string, path: string) => {
    const language = languageOf(path)
    return language ? highlight(line, language).map(({ kind, text }) => `${kind}:${text}`) : undefined
  }

  it.each([
    ['const a = "x" // note', 'a.ts', ['keyword:const', 'plain: a = ', 'string:"x"', 'plain: ', 'comment:// note']],
    ["url = 'http://a#b'", 'a.py', ['plain:url = ', "string:'http://a#b'"]],
    ['return 0x1f', 'a.go', ['keyword:return', 'plain: ', 'number:0x1f']],
    [' * of a block', 'a.js', ['comment: * of a block']],
    ['plain text', 'README', undefined],
  ])('%s', (line, path, expected) => {
    expect(kinds(line, path)).toEqual(expected)
  })

  it('keeps every character, and leaves very long lines alone', () => {
    const language = languageOf('a.ts')
    if (!language) throw new Error('no language')
    for (const line of ['`a $b "c', '"unclosed', '\\', 'x'.repeat(5_000)])
      expect(
        highlight(line, language)
          .map(({ text }) => text)
          .join(''),
      ).toBe(line)
  })
})

describe('remarks on a change', () => {
  it('stand on the side where their line exists', () => {
    expect(placeOf({ kind: 'context', text: '', before: 3, after: 4 })).toEqual({ side: 'new', line: 4 })
    expect(placeOf({ kind: 'removed', text: '', before: 3 })).toEqual({ side: 'old', line: 3 })
    expect(placeOf({ kind: 'note', text: '' })).toBeUndefined()
  })

  it('go out as one message with place and code', () => {
    const comments = [
      { path: 'a.ts', line: 4, side: 'new' as const, code: 'let a', text: 'const?' },
      { path: 'b.ts', side: 'new' as const, code: '', text: 'Not needed' },
    ]
    expect(reviewMessage('', comments)).toEqual({
      task: 'Please address these remarks on the change.',
      comments: [
        { path: 'a.ts', line: 4, side: 'new', code: 'let a', text: 'const?' },
        { path: 'b.ts', text: 'Not needed' },
      ],
    })
    expect(reviewMessage(' Two things ', comments).task).toBe('Two things')
  })
})

describe('words', () => {
  it.each([
    ['/home/me/shop', 'shop'],
    ['https://host/team/shop.git', 'shop'],
    ['git@host:shop.git', 'shop'],
    ['ssh://host/team/shop/', 'shop'],
  ])('the repository %s is called %s', (repo, name) => expect(repositoryName(repo)).toBe(name))

  it('has a word for a phase it does not know', () => {
    expect(statusWord('RUNNING')).toEqual({ word: 'Working', tone: 'working' })
    expect(statusWord('NEW_PHASE').word).toBe('new phase')
    expect(hasEnded('TIMED_OUT')).toBe(true)
    expect(hasEnded('WAITING_INPUT')).toBe(false)
  })

  it('filters by all words in any order', () => {
    expect(matches('Fix the cart', 'cart fix')).toBe(true)
    expect(matches('Fix the cart', 'cart break')).toBe(false)
  })
})

describe('usage', () => {
  const task = (agent: string, cost: number | undefined, created = '2026-01-02T10:00:00Z'): TaskSummary =>
    ({
      id: 'task-a',
      title: '',
      status: 'SUCCEEDED',
      repo: '/r',
      agent: { name: agent },
      timeout_seconds: 1,
      created_at: created,
      usage: {
        input_tokens: 10,
        output_tokens: 5,
        cache_read_tokens: 0,
        cache_write_tokens: 0,
        ...(cost === undefined ? {} : { cost_usd: cost }),
      },
    }) satisfies TaskSummary

  it('adds up by any name, the most expensive first, and says what has no price', () => {
    const rows = usageBy([task('a', 1), task('b', 2), task('a', undefined)], ({ agent }) => agent.name)
    expect(rows.map(({ name, tasks, costUsd, unpriced }) => [name, tasks, costUsd, unpriced])).toEqual([
      ['b', 1, 2, 0],
      ['a', 2, 1, 1],
    ])
  })

  it.each<[string, TaskSummary['status'][], string]>([
    ['a task that still runs is neither a success nor a failure', ['SUCCEEDED', 'FAILED', 'RUNNING', 'QUEUED'], '50 %'],
    ['nothing has ended yet', ['RUNNING'], '–'],
  ])('says how many succeeded: %s', (_, statuses, words) => {
    const [row] = usageBy(
      statuses.map((status) => ({ ...task('a', 1), status })),
      () => 'all',
    )
    expect(row && successOf(row)).toBe(words)
  })

  it('has every day, those without a task too', () => {
    const found = days([task('a', 1)], 3, Date.parse('2026-01-03T12:00:00Z'))
    expect(found.map(({ day, row }) => [day, row.tasks])).toEqual([
      ['2026-01-01', 0],
      ['2026-01-02', 1],
      ['2026-01-03', 0],
    ])
  })
})
