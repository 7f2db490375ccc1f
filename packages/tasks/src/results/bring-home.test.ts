import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentTask, Stored } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { createBringHome } from './bring-home.js'

let top: string
let commit: string

const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], {
    cwd: top,
    encoding: 'utf8',
  }).trim()
const write = (name: string, text: string): void => writeFileSync(join(top, name), text)
const commitAll = (message: string): string => {
  git('add', '-A')
  git('commit', '-qm', message)
  return git('rev-parse', 'HEAD')
}

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'bring-home-'))
  git('init', '-q', '-b', 'main')
  write('cart.txt', 'one\ntwo\n')
  write('.gitignore', 'ignored\n')
  commitAll('first')
  git('switch', '-qc', 'corral/task-a')
  write('cart.txt', 'one\ntwo\nthree\n')
  write('new.txt', 'new\n')
  commit = commitAll('the work')
  git('switch', '-q', 'main')
})
afterEach(() => rmSync(top, { recursive: true, force: true }))

const task = (status: object = {}): Stored<AgentTask> =>
  ({
    metadata: { name: 'task-a', uid: 'u', namespace: 'corral', resourceVersion: '1', creationTimestamp: '' },
    spec: { repository: { url: top }, prompt: 'x', agent: { name: 'command' } },
    status: { phase: 'SUCCEEDED', commit, pushed: true, branch: 'corral/task-a', baseBranch: 'main', ...status },
  }) as unknown as Stored<AgentTask> // the parts that are read

const home = () =>
  createBringHome({
    git: createGit({ globalConfig: '/dev/null', env: process.env }),
    findIdentity: async () => ({ name: 'Ada', email: 'ada@example.com' }),
  })

describe('the change of a task comes into the work tree of its repository', () => {
  it('as a fast-forward where nothing else happened', async () => {
    const applied = await home().apply(task(), 'merge')
    expect(applied).toEqual({ how: 'merge', work_tree: top, branch: 'main', commit, fast_forward: true })
    expect(git('status', '--porcelain')).toBe('')
    expect(readFileSync(join(top, 'new.txt'), 'utf8')).toBe('new\n')
  })

  it('as a merge commit of the user where the branch went on', async () => {
    write('other.txt', 'other\n')
    const before = commitAll('meanwhile')
    const applied = await home().apply(task(), 'merge')
    expect(applied.fast_forward).toBe(false)
    expect(git('log', '-1', '--format=%P|%an|%s')).toBe(
      `${before} ${commit}|Ada|Merge branch 'corral/task-a' into main`,
    )
  })

  it('as edits that are not committed', async () => {
    const before = git('rev-parse', 'HEAD')
    expect(await home().apply(task(), 'edits')).toMatchObject({ how: 'edits', commit: before, fast_forward: false })
    expect(git('diff', '--name-only', 'HEAD')).toBe('cart.txt\nnew.txt')
  })

  it.each(['false', 'only'])('as edits where the user merges with merge.ff = %s', async (how) => {
    git('config', 'merge.ff', how)
    write('other.txt', 'other\n')
    const before = commitAll('meanwhile')
    expect(await home().apply(task(), 'edits')).toMatchObject({ how: 'edits', commit: before })
    expect(git('diff', '--name-only', 'HEAD')).toBe('cart.txt\nnew.txt')
  })

  it('once: a second time changes nothing', async () => {
    await home().apply(task(), 'merge')
    expect(await home().apply(task(), 'merge')).toMatchObject({ commit })
    expect(git('rev-parse', 'HEAD')).toBe(commit)
  })
})

const marker = '#!/bin/sh\ntouch ran\n'

describe('what cannot be done whole is refused, and the work tree stays as it is', () => {
  it.each<{ when: string; given: () => void; code: string; says: RegExp; status?: object }>([
    {
      when: 'a file is changed',
      given: () => write('cart.txt', 'mine\n'),
      code: 'WorkTreeDirty',
      says: /1 file not committed/,
    },
    {
      when: 'there are files git does not know',
      given: () => write('mine.txt', 'mine\n'),
      code: 'WorkTreeDirty',
      says: /not committed/,
    },
    {
      when: 'both sides changed the same lines',
      given: () => {
        write('cart.txt', 'one\ntwo\nmine\n')
        commitAll('mine')
      },
      code: 'MergeConflict',
      says: /changed the same lines: cart\.txt/,
    },
    {
      when: 'another branch is checked out',
      given: () => git('switch', '-qc', 'other'),
      code: 'ApplyNotPossible',
      says: /is on "other", and the task started from "main"/,
    },
    {
      when: 'no branch is checked out',
      given: () => git('checkout', '-q', '--detach'),
      code: 'ApplyNotPossible',
      says: /no branch is checked out/,
    },
    {
      when: 'a rebase is going on',
      given: () => mkdirSync(join(top, '.git/rebase-merge')),
      code: 'ApplyNotPossible',
      says: /merge or rebase is going on/,
    },
    {
      when: 'its configuration runs a program for files, which the task could have written',
      given: () => {
        write('tool.sh', marker)
        commitAll('tool')
        git('config', 'filter.tool.smudge', 'sh ./tool.sh')
      },
      code: 'ApplyNotPossible',
      says: /runs programs.*filter\.tool\.smudge/,
    },
    {
      when: 'a file that its configuration includes names a program for objects that a remote has promised',
      given: () => {
        git('config', 'remote.origin.promisor', 'true')
        git('config', '--file', join(top, '.git/more'), 'credential.https://localhost.helper', 'sh ./tool.sh')
        git('config', 'include.path', 'more')
      },
      code: 'ApplyNotPossible',
      says: /runs programs.*credential\.https:\/\/localhost\.helper/,
    },
    {
      when: 'an ignored file would be written over',
      given: () => {
        git('switch', '-q', 'corral/task-a')
        write('ignored', 'of the task\n')
        git('add', '-f', 'ignored')
        commit = commitAll('ignored')
        git('switch', '-q', 'main')
        write('ignored', 'mine\n')
      },
      code: 'ApplyNotPossible',
      says: /git could not merge/,
    },
    {
      when: 'the task left no branch',
      given: () => undefined,
      status: { pushed: false },
      code: 'ApplyNotPossible',
      says: /has no branch to bring home/,
    },
  ])('$when', async ({ given, code, says, status }) => {
    given()
    const before = [git('rev-parse', 'HEAD'), git('status', '--porcelain', '--ignored')]
    for (const how of ['merge', 'edits'] as const)
      await expect(home().apply(task(status), how)).rejects.toMatchObject({ code, message: expect.stringMatching(says) })
    expect([git('rev-parse', 'HEAD'), git('status', '--porcelain', '--ignored')]).toEqual(before)
  })

  it('a program that its configuration names for objects that are missing does not run', async () => {
    git('switch', '-q', 'corral/task-a')
    write('.gitattributes', '* text=auto\n')
    commit = commitAll('attributes')
    git('switch', '-q', 'main')
    const blob = git('rev-parse', `${commit}:.gitattributes`)
    rmSync(join(top, '.git/objects', blob.slice(0, 2), blob.slice(2)))
    const ran = join(top, '.git/ran')
    git('config', 'remote.origin.url', top)
    git('config', 'remote.origin.promisor', 'true')
    git('config', 'remote.origin.uploadpack', `touch ${ran}; false`)
    for (const how of ['merge', 'edits'] as const)
      await expect(home().apply(task(), how)).rejects.toMatchObject({
        code: 'ApplyNotPossible',
        message: expect.stringMatching(/runs programs.*remote\.origin\.uploadpack/),
      })
    expect(existsSync(ran)).toBe(false)
    // The control: git alone runs it.
    expect(() => git('cat-file', 'blob', blob)).toThrow()
    expect(existsSync(ran)).toBe(true)
  })

  it('a hook that the task has written does not run', async () => {
    git('switch', '-q', 'corral/task-a')
    mkdirSync(join(top, 'hooks'))
    writeFileSync(join(top, 'hooks/post-merge'), marker, { mode: 0o755 })
    commit = commitAll('hook')
    git('switch', '-q', 'main')
    git('config', 'core.hooksPath', 'hooks')
    await home().apply(task(), 'merge')
    expect(git('status', '--porcelain')).toBe('')
  })
})
