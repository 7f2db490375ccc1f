import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkOutBranch } from './take-home.js'

const top = mkdtempSync(join(tmpdir(), 'corral-take-home-'))
afterAll(() => rmSync(top, { recursive: true, force: true }))

const git = (...args: string[]): string =>
  execFileSync('git', ['-C', top, '-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], {
    encoding: 'utf8',
  }).trim()

function commit(files: Record<string, string>): string {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(top, name), text)
  git('add', '--all')
  git('commit', '-qm', 'work')
  return git('rev-parse', 'HEAD')
}

let task: { id: string; repo: string; branch: string; commit: string }

beforeAll(() => {
  git('init', '-q', '-b', 'main')
  commit({ 'known.txt': 'base' })
  git('checkout', '-qb', 'corral/task-1')
  const made = commit({ 'known.txt': 'task', 'a.txt': '1', 'b.txt': '1', 'c.txt': '1', 'd.txt': '1' })
  task = { id: 'task-1', repo: top, branch: 'corral/task-1', commit: made }
  git('checkout', '-q', 'main')
})

it.each([
  { when: 'git does not know', mine: ['a.txt'], says: /overwrite your changes: a\.txt$/ },
  { when: 'are changed', mine: ['known.txt'], says: /overwrite your changes: known\.txt$/ },
  { when: 'are many', mine: ['a.txt', 'b.txt', 'c.txt', 'd.txt'], says: /: a\.txt, b\.txt, c\.txt and 1 more$/ },
])('`task checkout --allow-dirty` over files that $when names them, not “Aborting”', async ({ mine, says }) => {
  for (const name of mine) writeFileSync(join(top, name), 'mine')
  await expect(checkOutBranch(top, task, task.branch)).rejects.toMatchObject({
    message: expect.stringMatching(says),
    hint: expect.stringContaining('git stash -u'),
  })
  for (const name of mine) expect(readFileSync(join(top, name), 'utf8')).toBe('mine')
  git('reset', '-q', '--hard')
  git('clean', '-qfd')
})
