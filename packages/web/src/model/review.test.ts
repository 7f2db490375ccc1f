import type { SettingsView } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { codeOf, firstLineOf, placeWords, reviewMessage } from './comments.js'
import { fileTree } from './file-tree.js'
import type { PatchLine } from './patch.js'
import { draftOf, isChanged, needsRestart, patchOf } from './settings-draft.js'
import { takeHomeLines } from './take-home.js'

const shown = (paths: string[]) =>
  fileTree(paths).map(
    (line) => `${'  '.repeat(line.depth)}${line.name}${line.kind === 'folder' ? '/' : ` ${line.index}`}`,
  )

describe('files as a tree', () => {
  it.each<[string, string[], string[]]>([
    ['files at the root come after folders', ['README.md', 'src/a.ts'], ['src/', '  a.ts 1', 'README.md 0']],
    ['a folder with one folder is one line', ['a/b/c/x', 'a/b/c/y'], ['a/b/c/', '  x 0', '  y 1']],
    ['a folder with a file of its own stays', ['a/x', 'a/b/y'], ['a/', '  b/', '    y 1', '  x 0']],
    ['names that objects have are names', ['__proto__/constructor'], ['__proto__/', '  constructor 0']],
    ['nothing is nothing', [], []],
  ])('%s', (_, paths, lines) => {
    expect(shown(paths)).toEqual(lines)
  })
})

describe('remarks on a range', () => {
  const lines: PatchLine[] = [
    { kind: 'context', text: 'a', before: 3, after: 3 },
    { kind: 'removed', text: 'b', before: 4 },
    { kind: 'added', text: 'c', after: 4 },
    { kind: 'added', text: 'd', after: 5 },
  ]

  it('carry the code of their side alone', () => {
    expect(codeOf(lines, 'new', 3, 5)).toBe('a\nc\nd')
    expect(codeOf(lines, 'old', 3, 4)).toBe('a\nb')
    expect(firstLineOf(lines, 'new')).toBe(3)
  })

  it('are said with both lines, and with one where both are the same', () => {
    expect(placeWords({ line: 5, startLine: 3 })).toBe('lines 3 to 5')
    expect(placeWords({ line: 5, startLine: 5 })).toBe('line 5')
    const remark = { path: 'x', side: 'new' as const, code: 'c\nd', text: 'Why?', line: 5 }
    expect(reviewMessage('', [{ ...remark, startLine: 4 }]).comments).toEqual([
      { path: 'x', line: 5, start_line: 4, side: 'new', code: 'c\nd', text: 'Why?' },
    ])
    expect(reviewMessage('', [{ ...remark, startLine: 5 }]).comments?.[0]).not.toHaveProperty('start_line')
  })
})

describe('ways to take a change', () => {
  it('quotes what a shell would take apart', () => {
    const lines = takeHomeLines({ id: 'task-a', repo: "/src/it's", branch: 'b;rm', base_branch: 'main', pushed: true })
    expect(lines[0]?.text).toBe(`git switch main && git fetch '/src/it'\\''s' 'b;rm' && git merge FETCH_HEAD`)
  })

  it('leaves git out where there is no branch', () => {
    expect(takeHomeLines({ id: 'task-a', repo: '/src/shop' }).map(({ text }) => text)).toEqual([
      'corral task apply task-a',
    ])
  })
})

describe('a draft of the settings', () => {
  const view: SettingsView = {
    provider: 'kubernetes',
    context: 'staging',
    namespace: 'agents',
    timeout_seconds: 5400,
    revision: '1',
    active: { provider: 'embedded', namespace: 'corral' },
    can_choose_provider: true,
  }

  it('asks for what it shows', () => {
    expect(isChanged(draftOf(view), view)).toBe(false)
    expect(patchOf(draftOf(view))).toEqual({
      patch: {
        provider: 'kubernetes',
        context: 'staging',
        namespace: 'agents',
        runtime_class: null,
        timeout_seconds: 5400,
        max_cost_usd: null,
        max_tokens: null,
      },
    })
  })

  it('forgets the cluster with this machine', () => {
    expect(patchOf({ ...draftOf(view), provider: 'embedded' })).toMatchObject({
      patch: { provider: 'embedded', context: null, namespace: null },
    })
  })

  it.each<[string, object, string]>([
    ['a namespace that is none', { namespace: 'My Team' }, 'namespace'],
    ['a time that is none', { timeoutMinutes: 'soon' }, 'timeoutMinutes'],
    ['a budget below nothing', { maxCost: '-1' }, 'maxCost'],
    ['half a token', { maxTokens: '0.5' }, 'maxTokens'],
  ])('refuses %s', (_, change, field) => {
    expect(patchOf({ ...draftOf(view), ...change })).toEqual({ problems: { [field]: expect.any(String) } })
  })

  it('needs a start where sandboxes would run elsewhere', () => {
    expect(needsRestart(view)).toBe(true)
    expect(needsRestart({ ...view, provider: 'embedded' })).toBe(false)
    const there: SettingsView = { ...view, active: { provider: 'kubernetes', context: 'staging', namespace: 'agents' } }
    expect(needsRestart(there)).toBe(false)
    expect(needsRestart({ ...there, namespace: 'other' })).toBe(true)
  })
})
