import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '@corral/testing'
import { afterEach, expect, it, vi } from 'vitest'
import { applyPatch, checkOutBranch } from './take-home.js'

afterEach(() => vi.unstubAllEnvs())

const plain = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@t', ...args], { cwd, encoding: 'utf8' })

/** A work tree on `main`, with a branch `work` that has the given files. */
function workTree(place: string, { ignored = '', files }: { ignored?: string; files: Record<string, string> }): string {
  const top = join(place, 'tree')
  mkdirSync(top)
  plain(top, 'init', '-q', '-b', 'main')
  writeFileSync(join(top, 'a.txt'), 'base\n')
  writeFileSync(join(top, '.gitignore'), ignored)
  plain(top, 'add', '-A')
  plain(top, 'commit', '-qm', 'base')
  plain(top, 'checkout', '-qb', 'work')
  for (const [name, text] of Object.entries(files)) writeFileSync(join(top, name), text)
  plain(top, 'add', '-Af')
  plain(top, 'commit', '-qm', 'work')
  plain(top, 'checkout', '-q', 'main')
  return top
}

async function* patchOf(top: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(plain(top, 'diff', '--binary', '--full-index', 'main~1', 'work'))
}

/** Puts a git first in PATH that says in another language what is said to people, unless it is asked for none. */
function translate(place: string): void {
  const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  const said = join(place, 'said')
  const text = `#!/bin/sh
if [ "$LC_ALL" = C ]; then exec ${real} "$@"; fi
${real} "$@" 2> ${said}
code=$?
sed 's/with conflicts/mit Konflikten/' ${said} >&2
exit $code
`
  mkdirSync(join(place, 'bin'))
  writeFileSync(join(place, 'bin', 'git'), text)
  chmodSync(join(place, 'bin', 'git'), 0o755)
  vi.stubEnv('PATH', `${join(place, 'bin')}:${process.env.PATH}`)
  vi.stubEnv('LC_ALL', 'de_DE.UTF-8')
}

it('a change that is merged with conflicts is told as that, whatever language git speaks', async () => {
  await using scratch = temporaryDirectory()
  const top = workTree(scratch.path, { files: { 'a.txt': 'theirs\n' } })
  writeFileSync(join(top, 'a.txt'), 'mine\n')
  plain(top, 'commit', '-qam', 'mine')
  translate(scratch.path)
  await expect(applyPatch(top, () => patchOf(top), { merge: true, id: 'task-x' })).resolves.toEqual({ conflicts: true })
  expect(plain(top, 'status', '--porcelain')).toBe('UU a.txt\n')
})

it('the checkout of a task leaves a file of the user that git ignores, and names it', async () => {
  await using scratch = temporaryDirectory()
  const top = workTree(scratch.path, { ignored: '.env\n', files: { '.env': 'theirs\n', 'n.txt': 'new\n' } })
  writeFileSync(join(top, '.env'), 'mine\n')
  const commit = plain(top, 'rev-parse', 'work').trim()
  await expect(checkOutBranch(top, { id: 'task-x', repo: top, branch: 'work', commit }, 'work')).rejects.toThrow(
    'git checkout would overwrite your changes: .env',
  )
  expect(readFileSync(join(top, '.env'), 'utf8')).toBe('mine\n')
  expect(plain(top, 'branch', '--show-current')).toBe('main\n')
})

it('a change that cannot be merged says which file is in the way', async () => {
  await using scratch = temporaryDirectory()
  const top = workTree(scratch.path, { ignored: '.env\n', files: { '.env': 'theirs\n', 'n.txt': 'new\n' } })
  plain(top, 'commit', '-q', '--allow-empty', '-m', 'later')
  writeFileSync(join(top, '.env'), 'mine\n')
  await expect(applyPatch(top, () => patchOf(top), { merge: true, id: 'task-x' })).rejects.toThrow(/applied: \.env: /)
  expect(readFileSync(join(top, '.env'), 'utf8')).toBe('mine\n')
})

it.each([
  { when: 'git does not know', mine: ['n.txt'], says: /overwrite your changes: n\.txt$/ },
  { when: 'are changed', mine: ['a.txt'], says: /overwrite your changes: a\.txt$/ },
  { when: 'are many', mine: ['b.txt', 'c.txt', 'd.txt', 'e.txt'], says: /: b\.txt, c\.txt, d\.txt and 1 more$/ },
])('`task checkout --allow-dirty` over files that $when names them, not “Aborting”', async ({ mine, says }) => {
  await using scratch = temporaryDirectory()
  const names = ['a.txt', 'b.txt', 'c.txt', 'd.txt', 'e.txt', 'n.txt']
  const top = workTree(scratch.path, { files: Object.fromEntries(names.map((name) => [name, 'theirs\n'])) })
  for (const name of mine) writeFileSync(join(top, name), 'mine\n')
  const commit = plain(top, 'rev-parse', 'work').trim()
  const task = { id: 'task-x', repo: top, branch: 'work', commit }
  await expect(checkOutBranch(top, task, 'work')).rejects.toMatchObject({
    message: expect.stringMatching(says),
    hint: expect.stringContaining('git stash -u'),
  })
  for (const name of mine) expect(readFileSync(join(top, name), 'utf8')).toBe('mine\n')
})
