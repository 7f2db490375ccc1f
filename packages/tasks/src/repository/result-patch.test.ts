import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isFullSize } from '@corral/testing'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { openScriptedSandbox, type ScriptedSandbox } from '../sandbox/scripted-sandbox.test-suite.js'
import { type AcceptedResult, createRepository, type RepositoryOptions } from './repository.js'

let directory: string
const signal = new AbortController().signal
const identity = ['-c', 'user.name=T', '-c', 'user.email=t@t']

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', [...identity, ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()
}

function shell(cwd: string, script: string): void {
  execFileSync('/bin/sh', ['-ec', script], { cwd, stdio: 'ignore' })
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-patch-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

async function resultOf(
  base: string,
  work: (sandbox: ScriptedSandbox) => void,
  limits: RepositoryOptions['limits'] = {},
): Promise<{ url: string; accepted: AcceptedResult; taskDirectory: string }> {
  const url = join(directory, 'source')
  git(directory, 'init', '-q', '-b', 'main', url)
  shell(url, base)
  git(url, 'add', '--all')
  git(url, 'commit', '-qm', 'base')
  const globalConfig = await writeGlobalConfig(join(directory, 'config'), {})
  const repository = createRepository({
    git: createGit({ globalConfig, env: { PATH: process.env.PATH, HOME: directory } }),
    mirrorsDirectory: join(directory, 'mirrors'),
    limits,
  })
  const taskDirectory = mkdtempSync(join(directory, 'task-'))
  const prepared = await repository.prepare({ url, taskDirectory, signal })
  const sandbox = openScriptedSandbox({ directory, prepared, branch: 'work' })
  work(sandbox)
  const { bundlePath, commit } = sandbox.collect()
  const request = { url, taskDirectory, bundlePath, baseCommit: prepared.commit, claimedCommit: commit, signal }
  const accepted = await repository.accept(request)
  await repository.publish({ url, taskDirectory, commit, branch: 'work', signal })
  return { url, accepted, taskDirectory }
}

/** The tree that a plain `git apply` of the patch on a fresh checkout of the base gives. */
function treeAfterApply(url: string, patchPath: string): string {
  const clone = join(directory, 'clone')
  git(directory, 'clone', '-q', '--no-local', '--branch', 'main', url, clone)
  git(clone, 'apply', '--index', patchPath)
  return git(clone, 'write-tree')
}

const base = `
printf 'one\\ntwo\\n' > text.txt
printf 'one\\r\\ntwo\\r\\n' > crlf.txt
printf 'caf\\351\\n' > latin1.txt
head -c 50000 /dev/urandom > image.bin
printf '#!/bin/sh\\n' > run.sh
ln -s text.txt link
mkdir -p dir && printf 'kept as it is\\n' > dir/renamed.txt
printf 'no newline' > end.txt`

it.each<{ when: string; work: string }>([
  { when: 'text', work: 'echo three >> text.txt; rm dir/renamed.txt' },
  {
    when: 'binary files that are new, changed and gone',
    work: 'head -c 90000 /dev/urandom > new.bin; echo x >> image.bin',
  },
  { when: 'a binary file that is gone', work: 'rm image.bin' },
  { when: 'line endings of Windows', work: "printf 'one\\r\\nTWO\\r\\nthree\\n' > crlf.txt" },
  { when: 'text that is not UTF-8', work: "printf 'caf\\351 na\\357ve \\377\\n' > latin1.txt" },
  { when: 'renames and modes', work: 'mkdir other; mv dir/renamed.txt other/moved.txt; chmod +x run.sh' },
  {
    when: 'links that are new, changed and become files',
    work: 'ln -sfn dir link; ln -s nowhere dangling; rm text.txt; ln -s x text.txt',
  },
  { when: 'a link that becomes a file', work: 'rm link; echo plain > link' },
  {
    when: 'odd names',
    work: 'printf a > "$(printf \'sp\\303\\244ce \\"q\\" \\ttab\')"; printf b > "$(printf \'l1\\351\')"',
  },
  {
    when: 'no newline at the end and empty files',
    work: "printf 'still none' > end.txt; : > empty; mkdir d; : > d/empty",
  },
])('the patch of $when gives the tree of the result', async ({ work }) => {
  const { url, accepted } = await resultOf(base, (sandbox) => sandbox.agent(work))
  expect(treeAfterApply(url, accepted.patchPath ?? '')).toBe(git(url, 'rev-parse', `${accepted.commit}^{tree}`))
})

// tests/platform/task-diff.test.ts has one of a whole task each time.
if (isFullSize)
  it('a patch of more than 16 MB is whole', async () => {
    const { url, accepted } = await resultOf(base, (sandbox) =>
      sandbox.agent('seq 1 2600000 > numbers.txt; head -c 3000000 /dev/urandom > big.bin; echo last > zz.txt'),
    )
    expect(statSync(accepted.patchPath ?? '').size).toBeGreaterThan(16 * 1024 * 1024)
    expect(treeAfterApply(url, accepted.patchPath ?? '')).toBe(git(url, 'rev-parse', `${accepted.commit}^{tree}`))
  })

it('a patch that is larger than is kept is left out, and the result is not lost for it', async () => {
  const { url, accepted, taskDirectory } = await resultOf(
    base,
    (sandbox) => sandbox.agent('seq 1 200000 > numbers.txt'),
    {
      patchBytes: 64 * 1024,
    },
  )
  expect(accepted).toMatchObject({ diffStat: { filesChanged: 1, insertions: 200_000 } })
  expect(accepted.patchPath).toBeUndefined()
  expect(() => statSync(join(taskDirectory, 'result.patch'))).toThrow(/ENOENT/)
  expect(git(url, 'rev-parse', 'work')).toBe(accepted.commit)
})
