import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { readTextFile } from './read-text-file.js'

const directory = mkdtempSync(join(tmpdir(), 'corral-read-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

beforeAll(() => {
  const script = `
    git init -q -b main . && mkdir -p plain dir/file real && echo text > plain/file && echo x > dir/file/inner
    echo text > real/file && ln -s ../plain/file link && ln -s real behind && echo top > top && printf 123456789 > large
    git add -A && git commit -qm one`
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b' }
  execFileSync('sh', ['-euc', script], {
    cwd: directory,
    env: { ...env, GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b' },
  })
})

it.each<[what: string, path: string, answer: unknown]>([
  ['a plain file', 'plain/file', { text: 'text\n' }],
  ['a file at the top', 'top', { text: 'top\n' }],
  ['one that is too large', 'large', { sizeBytes: 9 }],
  ['nothing', 'plain/none', undefined],
  ['nothing at the top', 'none', undefined],
  ['a symbolic link', 'link', { other: 'a symbolic link' }],
  ['a directory', 'dir/file', { other: 'a directory' }],
  ['a file behind a link to its directory', 'behind/file', { other: 'behind behind, which is a symbolic link' }],
])('%s', async (_, path, answer) => {
  const git = createGit({ globalConfig: '/dev/null', env: process.env })
  const place = { mirror: directory, commit: 'main', path, maxBytes: 8, signal: AbortSignal.timeout(60_000) }
  expect(await readTextFile(git, place)).toEqual(answer)
})
