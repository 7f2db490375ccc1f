import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { createRepository, type PreparedRepository, type Repository } from './repository.js'

const identity = ['-c', 'user.name=T', '-c', 'user.email=t@localhost']
const signal = new AbortController().signal
let directory: string
let source: string
let repository: Repository

const git = (...args: string[]): string =>
  execFileSync('git', [...identity, ...args], {
    cwd: source,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()
const commitFile = (name: string): string => {
  writeFileSync(join(source, name), `${name}\n`)
  git('add', '.')
  git('commit', '-qm', name)
  return git('rev-parse', 'HEAD')
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-continued-'))
  source = join(directory, 'source')
  execFileSync('git', ['init', '-q', '-b', 'main', source])
  commitFile('base')
  const env = { PATH: process.env.PATH, HOME: directory, GIT_CONFIG_NOSYSTEM: '1' }
  repository = createRepository({
    git: createGit({ globalConfig: '/dev/null', env }),
    mirrorsDirectory: join(directory, 'mirrors'),
  })
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** The base of a task that goes on with the commit of a former one. */
const continued = (commit: string, takesAdditions: boolean, branch?: string): Promise<PreparedRepository> =>
  repository.prepare({
    url: source,
    baseBranch: 'main',
    taskDirectory: mkdtempSync(join(directory, 'task-')),
    continues: { commit, takesAdditions, branch },
    signal,
  })

it('commits that were added to the branch of a task are part of what its follow-up starts from, where it takes them', async () => {
  git('checkout', '-qb', 'work')
  const former = commitFile('former')
  const added = commitFile('added')
  git('checkout', '-q', 'main')
  expect(await continued(former, true, 'work')).toMatchObject({ commit: added, branch: 'work' })
  expect(await continued(former, false, 'work')).toMatchObject({ commit: former, branch: 'work' })
})

it('a branch that was moved to other work is not what a follow-up starts from', async () => {
  git('checkout', '-qb', 'work')
  const former = commitFile('former')
  git('checkout', '-q', 'main')
  git('branch', '-f', 'work', 'main')
  await repository.prepare({
    url: source,
    taskDirectory: mkdtempSync(join(directory, 'task-')),
    baseBranch: 'main',
    signal,
  })
  const prepared = await continued(former, true, 'work').catch((error: unknown) => error)
  expect(prepared).toMatchObject({ code: 'InvalidTask' })
  expect(String(prepared)).toContain('is no longer kept')
})

it('a follow-up starts from the former commit where its branch is gone and the repository has it elsewhere', async () => {
  git('checkout', '-qb', 'work')
  const former = commitFile('former')
  git('checkout', '-q', 'main')
  git('merge', '-q', '--ff-only', 'work')
  git('branch', '-D', 'work')
  commitFile('later')
  expect(await continued(former, true, 'work')).toMatchObject({ commit: former })
  expect(await continued(former, true)).toMatchObject({ commit: former })
})
