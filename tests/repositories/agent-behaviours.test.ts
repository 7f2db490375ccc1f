import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isFullSize } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Behaviour, behaviours } from './behaviours.js'
import { oddBehaviours } from './odd-behaviours.js'
import {
  git,
  keptRefs,
  openWorkshop,
  packedFiles,
  type Snapshot,
  sampleRepository,
  snapshotOfCommit,
  snapshotOfDisk,
  type Workshop,
} from './round-trip.js'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const rows = [...behaviours, ...oddBehaviours].filter(({ isCore }) => isFullSize || isCore)

let workshop: Workshop
beforeEach(async () => {
  workshop = await openWorkshop()
})
afterEach(() => workshop?.[Symbol.dispose]())

describe.each(rows)('when $when', (row) => {
  it('the pushed files and commits are what the agent made', async () => {
    const source = sampleRepository(workshop)
    let before: ReturnType<typeof whatTheAgentMade> | undefined
    const landed = await workshop.roundTrip(source, {
      agent: row.agent,
      ...(row.setup ? { setup: row.setup } : {}),
      ...(row.gitConfig ? { gitConfig: row.gitConfig } : {}),
      before: ({ repo }) => {
        before = whatTheAgentMade(repo, row, git(source, 'rev-parse', 'main'))
      },
    })
    const { collected, base } = landed
    expect(collected.warnings.map(({ code }) => code).sort()).toEqual(row.warns ?? [])
    const kept = (row.kept ?? []).map((name) => (typeof name === 'string' ? name : expect.stringMatching(name)))
    expect(keptRefs(collected.kept ? collected.keptPath : undefined)).toEqual(kept)
    expect(packedFiles(collected)).toEqual(row.packed ?? [])
    expect(collected.changed).toBe(row.tree !== 'nothing')
    if (!collected.changed) return

    // Read from the repository the branch was pushed to, which has nothing else of the sandbox.
    const pushed = git(source, 'rev-parse', 'corral/x')
    expect(pushed).toBe(collected.commit)
    const commits = git(source, 'rev-list', '--topo-order', `${base}..${pushed}`).split('\n').filter(Boolean)
    const added = commits.filter((commit) => !before?.commits.includes(commit))
    expect(added).toHaveLength(row.added)
    expect(commits.filter((commit) => before?.commits.includes(commit)).sort()).toEqual(before?.commits.toSorted())
    if (before?.files) expect(snapshotOfCommit(source, pushed)).toEqual(before.files)
    const message = git(source, 'show', '--no-patch', '--format=%B', pushed)
    for (const words of row.says ?? []) expect(message).toContain(words)
    expect(git(source, 'fsck', '--full', '--strict')).not.toContain('error')
  })
})

function whatTheAgentMade(
  repo: string,
  row: Behaviour,
  base: string,
): { files: Map<string, string> | undefined; commits: string[] } {
  const files = row.tree === 'nothing' ? undefined : filesOf(repo, row.tree)
  for (const path of row.without ?? []) files?.delete(path)
  if (files && !row.without?.includes('y.log')) for (const path of ['ignored/x']) files.delete(path)
  const commits = row.history ? commitsIn(repo, row.history.split(' '), base) : []
  return { files, commits }
}

function filesOf(repo: string, tree: Exclude<Behaviour['tree'], 'nothing'>): Snapshot {
  if (tree === 'disk') return snapshotOfDisk(repo)
  if ('disk' in tree) return snapshotOfDisk(join(repo, tree.disk))
  const files = snapshotOfCommit(repo, tree.rev)
  const disk = snapshotOfDisk(repo)
  for (const path of tree.plus ?? []) files.set(path, disk.get(path) ?? `${path} is not on disk`)
  for (const path of tree.without ?? []) files.delete(path)
  return files
}

/** Read with a repository of our own: the agent's may be one that git does not read any more. */
function commitsIn(repo: string, revisions: readonly string[], base: string): string[] {
  const config = join(repo, '.git/config')
  const isReadable = !existsSync(config) || readFileSync(config, 'utf8').includes('[core]')
  const tips = revisions.map((revision) =>
    isReadable
      ? git(repo, 'rev-parse', revision)
      : readFileSync(join(repo, '.git/refs/heads', revision), 'utf8').trim(),
  )
  const reader = workshop.fresh('reader')
  git(reader, 'init', '-q', '--bare')
  const gitDirectory = isReadable ? git(repo, 'rev-parse', '--absolute-git-dir') : join(repo, '.git')
  writeFileSync(join(reader, 'objects/info/alternates'), `${gitDirectory}/objects\n`)
  return git(reader, 'rev-list', ...tips, '--not', base)
    .split('\n')
    .filter(Boolean)
}
