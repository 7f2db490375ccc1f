import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ProcessFact, type Snapshot, takeSnapshot, whatIsLeft } from '../../scripts/what-is-left.js'

const fact = (pid: number, command: string, more: Partial<ProcessFact> = {}): ProcessFact => ({
  pid,
  parent: 1,
  startedAt: '100',
  command,
  isMarked: false,
  ...more,
})
const snapshot = (part: Partial<Snapshot> = {}): Snapshot => ({
  processes: [],
  mounts: [],
  controlGroups: [],
  ...part,
})
const group = '/sys/fs/cgroup/corral-1'

describe('what a run left behind', () => {
  it.each<{ what: string; before?: Partial<Snapshot>; after: Partial<Snapshot>; left: string[] }>([
    { what: 'nothing of a run that cleaned up', after: {}, left: [] },
    {
      what: 'any process that carries the mark',
      after: { processes: [fact(5, 'sleep 9', { isMarked: true, parent: 4 })] },
      left: ['process 5: sleep 9'],
    },
    {
      what: 'a program of ours without a parent, and what it started of ours',
      after: { processes: [fact(6, 'corral-cradle'), fact(7, '/tmp/x/corral-supervisor launch', { parent: 6 })] },
      left: ['process 6: corral-cradle', 'process 7: /tmp/x/corral-supervisor launch'],
    },
    {
      what: 'no program of ours that somebody else started',
      after: { processes: [fact(4, 'node bench.js'), fact(6, 'corral-cradle', { parent: 4 })] },
      left: [],
    },
    { what: 'no other program', after: { processes: [fact(4, 'node server.js')] }, left: [] },
    {
      what: 'nothing that was there before',
      before: { processes: [fact(6, 'corral-cradle')], mounts: ['/tmp/a'], controlGroups: [group] },
      after: { processes: [fact(6, 'corral-cradle')], mounts: ['/tmp/a'], controlGroups: [group] },
      left: [],
    },
    {
      what: 'a process under a number that another had before',
      before: { processes: [fact(6, 'corral-cradle', { startedAt: '1' })] },
      after: { processes: [fact(6, 'corral-cradle')] },
      left: ['process 6: corral-cradle'],
    },
    { what: 'a new mount', after: { mounts: ['/tmp/b'] }, left: ['mount: /tmp/b'] },
    { what: 'a new control group', after: { controlGroups: [group] }, left: [`control group: ${group}`] },
    {
      what: 'no control group that somebody else works in',
      after: { controlGroups: [group], processes: [fact(9, `corral-supervisor launch ${group}/slot`, { parent: 8 })] },
      left: [],
    },
  ])('$what', ({ before, after, left }) => {
    expect(whatIsLeft(snapshot(before), snapshot(after))).toEqual(left)
  })
})

describe.skipIf(process.platform !== 'linux')('a snapshot of this machine (Linux only)', () => {
  let directory: string
  let child: ChildProcess | undefined
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'corral-leftovers-'))
  })
  afterEach(async () => {
    if (child?.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit')
    rmSync(directory, { recursive: true, force: true })
  })

  it('finds a process by its mark, and groups in either layout', async () => {
    for (const path of ['corral-two', 'pids/corral-one', 'pids/other'])
      mkdirSync(join(directory, path), { recursive: true })
    child = spawn('sleep', ['60'], { env: { ...process.env, CORRAL_RUN: 'of-this-test' } })
    await once(child, 'spawn')
    const paths = { proc: '/proc', controlGroups: directory, temporary: directory }
    const taken = takeSnapshot(paths, 'CORRAL_RUN=of-this-test')
    expect(taken.processes.filter(({ isMarked }) => isMarked).map(({ pid }) => pid)).toEqual([child.pid])
    expect(taken.controlGroups.toSorted()).toEqual(
      ['corral-two', 'pids/corral-one'].map((path) => join(directory, path)),
    )
    expect(taken.mounts).toEqual([])
  })
})
