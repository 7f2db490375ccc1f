import type { AgentTaskStatus } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { type BuiltSnapshot, builtSnapshot, chooseSnapshot, labelsOf } from './choose-snapshot.js'
import { environmentKey, keyFileRule } from './environment-key.js'
import { environmentName } from './environment-object.js'
import { type KeptSnapshot, prunable } from './prune.js'

type TaskEnvironment = NonNullable<AgentTaskStatus['environment']>

const environment: TaskEnvironment = { commit: 'c', source: '.corral/environment.yaml', setup: 'npm ci' }
const facts = { architecture: 'x86_64', root: 'debian 12', home: '/home/agent', repository: '/workspace/repo' }
const files = [{ path: 'package-lock.json', oid: 'a'.repeat(40) }]
const tool = { name: 'node', version: '22.1.0', wantedBy: '.nvmrc', bin: '' }

describe('the key of an environment', () => {
  const before = environmentKey(environment, facts, files)
  it.each<{
    when: string
    other?: Partial<TaskEnvironment>
    root?: string
    lock?: string
    changes: 'key' | 'both' | 'none'
  }>([
    { when: 'the commit is another one', other: { commit: 'd' }, changes: 'none' },
    { when: 'checks or the agent’s network are other ones', other: { egress: ['x:443'] }, changes: 'none' },
    { when: 'update is another one', other: { update: 'npm install' }, changes: 'none' },
    { when: 'set-up is another one', other: { setup: 'npm install' }, changes: 'both' },
    { when: 'a variable is another one', other: { env: { A: '1' } }, changes: 'both' },
    { when: 'a tool is another one', other: { tools: [tool] }, changes: 'both' },
    { when: 'a secret is asked for', other: { secrets: [{ name: 'npm', env: 'T' }] }, changes: 'both' },
    { when: 'the root file system is another one', root: 'debian 13', changes: 'both' },
    { when: 'a lock file has another content', lock: 'b', changes: 'key' },
  ])('when $when: $changes', ({ other = {}, root = facts.root, lock = 'a', changes }) => {
    const after = environmentKey({ ...environment, ...other }, { ...facts, root }, [
      { path: 'package-lock.json', oid: lock.repeat(40) },
    ])
    expect(after.key === before.key).toBe(changes === 'none')
    expect(after.baseKey === before.baseKey).toBe(changes !== 'both')
  })

  it.each<{ path: string; named?: string[]; setup?: string; source?: string; counts: boolean }>([
    { path: 'package-lock.json', counts: true },
    { path: 'packages/a/package-lock.json', counts: true },
    { path: 'requirements-dev.txt', counts: true },
    { path: 'src/index.ts', counts: false },
    { path: 'scripts/bootstrap.sh', setup: 'bash ./scripts/bootstrap.sh --all', counts: true },
    { path: 'web/scripts/bootstrap.sh', setup: "cd -- 'web'\nbash scripts/bootstrap.sh", counts: true },
    { path: 'web/install.sh', setup: 'cd web && ./install.sh', counts: true },
    { path: 'web/test', setup: 'npm test', counts: false },
    { path: 'pnpm-workspace.yaml', counts: true },
    { path: '.corral/setup', setup: '', source: '.corral/setup', counts: true },
    { path: '.corral/environment.yaml', source: '.corral/environment.yaml', counts: false },
    { path: 'package-lock.json', named: ['deps.lock'], counts: false },
    { path: 'vendor/a/b', named: ['vendor/'], counts: true },
  ])(
    '$path, named $named, set-up "$setup": counts $counts',
    ({ path, named, setup = 'npm ci', source = '', counts }) => {
      expect(keyFileRule({ named, setup, source })(path)).toBe(counts)
    },
  )
})

describe('the environment of a task', () => {
  const identity = { repository: { url: '/srv/My Shop.git' }, ref: 'main' }
  it('is named after its repository', () => {
    expect(environmentName(identity)).toMatch(/^my-shop-[0-9a-f]{10}$/)
  })
  it.each([
    { other: 'branch', change: { ref: 'corral/task-1' } },
    { other: 'part', change: { part: 'web' } },
    { other: 'template', change: { sandbox: { template: 't' } } },
    { other: 'repository of that name', change: { repository: { url: '/other/My Shop.git' } } },
  ])('is another one for another $other', ({ change }) => {
    expect(environmentName({ ...identity, ...change })).not.toBe(environmentName(identity))
  })
})

describe('the snapshot a task gets', () => {
  const wanted = {
    key: 'k',
    baseKey: 'b',
    files: [
      { path: 'x', oid: '1' },
      { path: 'y', oid: '2' },
    ],
  }
  const snapshot = (name: string, more: Partial<BuiltSnapshot>): BuiltSnapshot => ({
    ...{ name, environment: 'e', environmentUid: 'u', build: 'b1', key: 'other', baseKey: 'b', commit: 'c', files: [] },
    ...{ builtAt: '2026-01-01T00:00:00Z', sizeBytes: 1, fileCount: 1, ...more },
  })
  it.each<{ when: string; there: BuiltSnapshot[]; gets: string | undefined; exact?: boolean }>([
    { when: 'there is none', there: [], gets: undefined },
    { when: 'all are set up in another way', there: [snapshot('a', { baseKey: 'z' })], gets: undefined },
    {
      when: 'two have its key: the newer',
      there: [snapshot('a', { key: 'k' }), snapshot('b', { key: 'k', builtAt: '2026-01-02T00:00:00Z' })],
      gets: 'b',
      exact: true,
    },
    {
      when: 'none has: the nearest',
      there: [snapshot('a', { files: [{ path: 'x', oid: '1' }] }), snapshot('b', { builtAt: '2026-01-02T00:00:00Z' })],
      gets: 'a',
      exact: false,
    },
  ])('when $when', ({ there, gets, exact }) => {
    const choice = chooseSnapshot(there, wanted)
    expect(choice?.snapshot.name).toBe(gets)
    if (exact !== undefined) expect(choice?.isExact).toBe(exact)
  })

  it('says of itself what it was sealed with', () => {
    const labels = { environment: 'e', environmentUid: 'u', build: 'b', key: 'k', baseKey: 'bk', commit: 'c' }
    const info = {
      ...{ name: 's', namespace: 'n', podUid: 'p', paths: [], bytes: 5, files: 7, createdAt: '2026-01-01T00:00:00Z' },
      labels: labelsOf({ ...labels, files }),
      stripped: { setuid: 0, devices: 0, sockets: 0, attributes: 0 },
    }
    expect(builtSnapshot(info)).toEqual({
      ...labels,
      ...{ name: 's', builtAt: '2026-01-01T00:00:00Z', sizeBytes: 5, fileCount: 7, files },
    })
    expect(builtSnapshot({ ...info, labels: {} })).toBe(undefined)
  })
})

describe('snapshots that are to go', () => {
  const now = new Date('2026-03-01T00:00:00Z')
  const one = (name: string, day: number, more: Partial<KeptSnapshot> = {}): KeptSnapshot => ({
    ...{
      name,
      environment: 'e',
      builtAt: `2026-02-${String(day).padStart(2, '0')}T00:00:00Z`,
      sizeBytes: 10,
      isInUse: false,
    },
    ...more,
  })
  it.each<{ when: string; there: KeptSnapshot[]; budgetBytes?: number; go: string[] }>([
    { when: 'an environment has as many as it may', there: [one('a', 1), one('b', 2), one('c', 3)], go: [] },
    { when: 'it has more: the oldest', there: [one('a', 1), one('b', 2), one('c', 3), one('d', 4)], go: ['a'] },
    {
      when: 'the oldest is in use: none',
      there: [one('a', 1, { isInUse: true }), one('b', 2), one('c', 3), one('d', 4)],
      go: [],
    },
    {
      when: 'they take more than they may: the least recently used',
      there: [one('a', 1, { lastUsedAt: '2026-02-20T00:00:00Z' }), one('b', 2), one('c', 3)],
      budgetBytes: 25,
      go: ['b'],
    },
    {
      when: 'an environment would lose its only one: another’s older one first',
      there: [one('a', 1, { environment: 'f' }), one('b', 2), one('c', 3)],
      budgetBytes: 20,
      go: ['b'],
    },
    {
      when: 'a task was told of it a minute ago',
      there: [one('a', 1, { lastUsedAt: '2026-02-28T23:59:00Z' })],
      budgetBytes: 0,
      go: [],
    },
    {
      when: 'there is no room at all',
      there: [one('a', 1), one('b', 2, { isInUse: true })],
      budgetBytes: 0,
      go: ['a'],
    },
  ])('when $when', ({ there, budgetBytes = 1_000, go }) => {
    expect(prunable(there, { perEnvironment: 3, budgetBytes }, now)).toEqual(go)
  })
})
