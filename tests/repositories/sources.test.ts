import { join } from 'node:path'
import { isFullSize } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ScriptedSandbox } from '../../packages/tasks/src/sandbox/scripted-sandbox.test-suite.js'
import {
  git,
  keptRefs,
  openWorkshop,
  type Snapshot,
  sampleRepository,
  snapshotOfDisk,
  type Workshop,
} from './round-trip.js'
import { largeSources, ordinaryWork, type Source, sources, withSubmodules } from './sources.js'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const rows = isFullSize ? [...sources, ...largeSources] : sources.filter(({ isCore }) => isCore)

// One for each source: the large ones are gone before the next is made.
let workshop: Workshop
beforeEach(async () => {
  workshop = await openWorkshop()
})
afterEach(() => workshop?.[Symbol.dispose]())

describe.each(rows)('when $when', (row) => {
  it('the sandbox has its history and the branch has what the agent made', async () => {
    const { url, reader = url, ...made } = row.make(workshop)
    let files: Snapshot = new Map()
    let commits: string[] = []
    let described = ''
    const landed = await workshop.roundTrip(url, {
      ...made,
      ...(row.gitConfig ? { gitConfig: row.gitConfig } : {}),
      agent: `git describe --tags --always > ../described; git rev-parse HEAD > ../base\n${row.agent ?? ordinaryWork}`,
      before: ({ repo }) => {
        files = withoutBelow(snapshotOfDisk(repo), row.submodules)
        const base = snapshotOfDisk(join(repo, '..')).get('base')!.slice('100644 '.length).trim()
        described = snapshotOfDisk(join(repo, '..')).get('described')!.slice('100644 '.length).trim()
        commits = commitsOf(repo, base)
      },
    })
    const { collected, base, warnings } = landed
    const codes = [...warnings, ...collected.warnings].map(({ code }) => code)
    expect(codes.sort()).toEqual(row.warns ?? [])
    expect(keptRefs(collected.kept ? collected.keptPath : undefined)).toEqual(row.kept ?? [])

    // What is kept of the repository itself can be fetched where it is, whatever lies beside it.
    if (row.kept?.some((name) => !name.startsWith('submodules/')))
      git(reader, 'fetch', '-q', collected.keptPath, 'refs/corral/kept/*:refs/corral/kept/*')

    const pushed = git(reader, 'rev-parse', 'refs/heads/corral/x')
    expect(pushed).toBe(collected.commit)
    const between = git(reader, 'rev-list', `${base}..${pushed}`).split('\n').filter(Boolean)
    expect(between.filter((commit) => commits.includes(commit)).sort()).toEqual(commits.toSorted())
    expect(between.length - commits.length).toBeLessThanOrEqual(1)
    expect(withoutBelow(checkedOut(reader, pushed), row.submodules)).toEqual(files)
    if (row.isDescribed) expect(described).toBe(git(reader, 'describe', '--tags', '--always', base))
    if (!isFullSize) expect(git(reader, 'fsck', '--connectivity-only')).not.toMatch(/missing|broken/)
  })
})

/** Commits beyond the base that the agent's HEAD has; none where it left no repository. */
function commitsOf(repo: string, base: string): string[] {
  try {
    return git(repo, 'rev-list', 'HEAD', '--not', base).split('\n').filter(Boolean)
  } catch {
    return []
  }
}

/** The files of a commit as git checks them out: line endings and encodings as on the agent's disk. */
function checkedOut(repository: string, commit: string): Snapshot {
  const tree = join(workshop.fresh('checkout'), 'tree')
  git('/', 'clone', '-q', '--no-checkout', '--shared', repository, tree)
  git(tree, 'checkout', '-q', '--detach', commit)
  return snapshotOfDisk(tree)
}

function withoutBelow(files: Snapshot, directories: Source['submodules'] = []): Snapshot {
  for (const path of [...files.keys()])
    if (directories.some((directory) => path.startsWith(`${directory}/`))) files.delete(path)
  return files
}

it('a checkpoint is taken again where only files of a submodule changed', async () => {
  const url = withSubmodules(workshop)
  let sandbox: ScriptedSandbox | undefined
  const before = (made: ScriptedSandbox): void => {
    sandbox = made
  }
  await workshop.roundTrip(url, { submodules: 'direct', agent: 'echo one > libs/one/new.txt', before })
  expect(sandbox?.checkpoint()?.kept).toBe(true)
  expect(sandbox?.checkpoint()).toBeUndefined()
  sandbox?.agent('echo two > libs/one/new.txt')
  expect(sandbox?.checkpoint()?.kept).toBe(true)
  sandbox?.agent('cd libs/one; git stash -qu')
  expect(sandbox?.checkpoint()?.kept).toBe(true)
  expect(sandbox?.checkpoint()).toBeUndefined()
})

it('a clone that lacks files is told as one', async () => {
  const source = sampleRepository(workshop)
  git(source, 'config', 'uploadpack.allowFilter', 'true')
  const url = workshop.fresh('partial')
  git(url, 'clone', '-q', '--no-checkout', '--filter=blob:none', `file://${source}`, '.')
  await expect(workshop.roundTrip(url, { agent: ':' })).rejects.toMatchObject({
    code: 'RepositoryDamaged',
    message: expect.stringContaining('damaged or a partial clone') as string,
    hint: expect.stringContaining('--filter') as string,
  })
})
