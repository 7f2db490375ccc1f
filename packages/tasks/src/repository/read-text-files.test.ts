import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { listFiles } from './list-files.js'
import { readTextFiles } from './read-text-files.js'

const directory = mkdtempSync(join(tmpdir(), 'corral-files-'))
const git = createGit({ globalConfig: '/dev/null', env: process.env })
const signal = AbortSignal.timeout(300_000)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

beforeAll(() => {
  const script = `
    git init -q -b main . && mkdir dir && echo text > plain && echo inner > dir/inner && printf 12345678 > eight
    printf 123456789 > nine && ln -s plain link && printf 'odd\\n' > "$(printf 'two\\nlines')" && chmod +x nine
    git add -A && git -c user.name=a -c user.email=a@b commit -qm one`
  execFileSync('sh', ['-euc', script], { cwd: directory, env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' } })
})

it('reads plain files in the order they are asked for; links, directories, large and missing ones are left out', async () => {
  const paths = ['two\nlines', 'plain', 'link', 'dir', 'dir/inner', 'none', 'eight', 'nine']
  expect(await readTextFiles(git, { mirror: directory, commit: 'main', paths, maxBytes: 8, signal })).toEqual([
    { path: 'two\nlines', text: 'odd\n' },
    { path: 'plain', text: 'text\n' },
    { path: 'dir/inner', text: 'inner\n' },
    { path: 'eight', text: '12345678' },
  ])
})

it('lists the files that are wanted by the ids of their contents, and no link', async () => {
  const oid = (path: string): string =>
    execFileSync('git', ['rev-parse', `main:${path}`], { cwd: directory, encoding: 'utf8' }).trim()
  const isWanted = (path: string): boolean => ['plain', 'dir/inner', 'link', 'dir'].includes(path)
  expect(await listFiles(git, { mirror: directory, commit: 'main', isWanted, signal })).toEqual([
    { path: 'dir/inner', oid: oid('dir/inner') },
    { path: 'plain', oid: oid('plain') },
  ])
})
