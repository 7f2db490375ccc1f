import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gitRepository, temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { createRepository, type Repository } from './repository.js'

const { signal } = new AbortController()
let scratch: ReturnType<typeof temporaryDirectory>
let source: Awaited<ReturnType<typeof gitRepository>>
let repository: Repository
let first: string
let second: string

beforeEach(async () => {
  scratch = temporaryDirectory()
  const globalConfig = await writeGlobalConfig(join(scratch.path, 'config'), process.env)
  repository = createRepository({
    git: createGit({ globalConfig, env: process.env }),
    mirrorsDirectory: join(scratch.path, 'mirrors'),
  })
  source = await gitRepository(join(scratch.path, 'source'))
  first = await source.git('rev-parse', 'HEAD')
  mkdirSync(join(source.path, 'lib'))
  for (const name of ['a.lock', 'b.txt']) writeFileSync(join(source.path, 'lib', name), name)
  await source.git('add', '--all')
  await source.git('commit', '--quiet', '-m', 'second')
  second = await source.git('rev-parse', 'HEAD')
})
afterEach(() => scratch[Symbol.asyncDispose]())

const prepare = (url: string, have: readonly string[] = []) =>
  repository.prepare({ url, taskDirectory: scratch.path, signal, have: async () => have })

describe('a base of which the sandbox has a part', () => {
  it.each([
    { when: 'it has an earlier commit', have: () => [first], since: () => first },
    { when: 'the best of what it has is not known here', have: () => ['f'.repeat(40), first], since: () => first },
    { when: 'it has the base itself', have: () => [second], since: () => second },
    { when: 'nothing of what it has is known', have: () => ['f'.repeat(40)], since: () => undefined },
    { when: 'it has nothing', have: () => [], since: () => undefined },
  ])('is sent as the rest: $when', async ({ have, since }) => {
    const wholeBytes = statSync((await prepare(source.path)).bundlePath).size
    const prepared = await prepare(source.path, have())
    expect(prepared.since).toBe(since())
    const bytes = statSync(prepared.bundlePath).size
    if (since() === undefined) expect(bytes).toBe(wholeBytes)
    else expect(bytes).toBeLessThan(wholeBytes)
  })

  it('is sent whole where the history ends early: what lies before it is not known', async () => {
    await source.git('clone', '--quiet', '--depth', '1', `file://${source.path}`, join(scratch.path, 'shallow'))
    const prepared = await prepare(join(scratch.path, 'shallow'), [second])
    expect({ commit: prepared.commit, since: prepared.since }).toEqual({ commit: second, since: undefined })
  })

  it('finds the files that decide about an environment, and no others', async () => {
    const { findFiles } = await prepare(source.path)
    const found = await findFiles((path) => path.endsWith('.lock'))
    expect(found).toEqual([{ path: 'lib/a.lock', oid: await source.git('rev-parse', 'HEAD:lib/a.lock') }])
  })
})

describe('a branch that work is to be pushed on', () => {
  const isAt = (branch: string, commit: string): Promise<boolean> =>
    repository.isBranchAt({ url: source.path, branch, commit, signal })

  it.each([
    { when: 'is not there yet', branch: 'new', isThere: true },
    { when: 'stands where the work left it', branch: 'work', isThere: true },
    { when: 'was moved on', branch: 'moved', isThere: false },
  ])('$when', async ({ branch, isThere }) => {
    await prepare(source.path)
    await source.git('branch', 'work', first)
    await source.git('branch', 'moved', second)
    expect(await isAt(branch, first)).toBe(isThere)
  })
})
