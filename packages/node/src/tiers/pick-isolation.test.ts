import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { pidsOfUid } from '../cradle/server/process-table.js'
import { compiledSupervisor, hasBubblewrap, openWorkbench, until } from '../isolation/workbench.test-suite.js'
import { readProbeOutput, remedyFor } from './bubblewrap/probe.js'
import { pickIsolation } from './pick-isolation.js'
import { processIsolation } from './process/process-isolation.js'

const canIsolate = hasBubblewrap && compiledSupervisor() !== undefined
const isRoot = process.getuid?.() === 0

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('remedyFor', () => {
  it.each([
    { problem: 'bwrap: setting up uid map: Permission denied', names: 'AppArmor' },
    { problem: 'loopback: Failed RTM_NEWADDR: Operation not permitted', names: 'AppArmor' },
    { problem: 'no bubblewrap on this machine', names: 'apt-get install bubblewrap' },
    { problem: "bwrap: Can't find source path /x: Permission denied", names: '0711' },
    { problem: 'something new', names: 'corral doctor' },
  ])('says what to do about "$problem"', ({ problem, names }) => {
    expect(remedyFor(problem)).toContain(names)
  })
})

it('counts an assertion that said nothing as failed', () => {
  const checks = readProbeOutput('ok runs as its own uid\nno has no VSOCK\n')
  expect(checks.filter(({ passed }) => passed).map(({ name }) => name)).toEqual(['runs as its own uid'])
})

describe.skipIf(!canIsolate)('tiers (bubblewrap and a C compiler installed)', () => {
  it('picks bubblewrap when its probe holds, and remembers that', async () => {
    const bench = openWorkbench('bubblewrap + compiled supervisor')
    onTestFinished(() => bench[Symbol.asyncDispose]())
    const report = await bench.isolation.probe()
    expect(report.checks.filter(({ passed }) => !passed)).toEqual([])
    expect(report).toMatchObject({ tier: 'bubblewrap', usable: true })
    expect(existsSync(join(bench.dataDir, 'cradle', 'probe.json'))).toBe(true)
    expect(await bench.isolation.probe()).toEqual(report)
    expect(existsSync(join(bench.dataDir, 'pods', 'corral-probe'))).toBe(false)
  })

  it('does not fall back to plain processes unless that was allowed', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'corral-tiers-'))
    onTestFinished(() => rmSync(dataDir, { recursive: true }))
    const broken = { dataDir, supervisorPath: '/no/such', supervisorScript: '/no/such' }
    await expect(pickIsolation(broken)).rejects.toMatchObject({ code: 'Unsupported' })
  })

  it('labels the process tier as what it is', async () => {
    const bench = openWorkbench('process')
    onTestFinished(() => bench[Symbol.asyncDispose]())
    const report = await bench.isolation.probe()
    expect(report.checks).toContainEqual({ name: 'holds back hostile code', passed: false, detail: 'not a sandbox' })
  })

  it('refuses host uid 0 for a pod', async () => {
    if (!isRoot) return
    const bench = openWorkbench('bubblewrap + compiled supervisor')
    onTestFinished(() => bench[Symbol.asyncDispose]())
    await expect(bench.isolation.preparePod(bench.pod({ hostUid: 0 }))).rejects.toMatchObject({ code: 'Forbidden' })
  })

  it('drains a cradle of another kind before it starts its own', async () => {
    const bench = openWorkbench('bubblewrap + compiled supervisor')
    onTestFinished(() => bench[Symbol.asyncDispose]())
    const cell = await bench.start('exec sleep 600')
    const before = cradlePid(bench.dataDir)
    const other = processIsolation({ dataDir: bench.dataDir, cradleEntry: join(bench.dataDir, 'cradle.mjs') })
    onTestFinished(() => other.close({ endPods: true }))
    expect(await other.adopt()).toEqual([])
    expect(cradlePid(bench.dataDir)).not.toBe(before)
    expect(await cell.exited).toMatchObject({ exitCode: 137 })
  })

  it('ends pods and cradle when no main has come back for long enough', async () => {
    const bench = openWorkbench('bubblewrap + compiled supervisor', { idleShutdownMs: 300 })
    onTestFinished(() => bench[Symbol.asyncDispose]())
    const pod = bench.pod()
    await bench.isolation.preparePod(pod)
    await bench.isolation.launch(bench.plan(pod, 'exec sleep 600'))
    const pid = cradlePid(bench.dataDir)
    await bench.isolation.close({ endPods: false })
    await until('the cradle has ended', () => !isAlive(pid))
    if (isRoot) expect(pidsOfUid(pod.hostUid)).toEqual([])
  })

  it('ends pods and cradle at once with a main that said so, however that main went', async () => {
    const bench = openWorkbench('bubblewrap + compiled supervisor', { idleShutdownMs: 3_600_000 })
    onTestFinished(() => bench[Symbol.asyncDispose]())
    const pod = bench.pod()
    await bench.isolation.preparePod(pod)
    await bench.isolation.launch(bench.plan(pod, 'exec sleep 600'))
    const pid = cradlePid(bench.dataDir)
    await bench.isolation.announceEnd?.()
    expect(isAlive(pid)).toBe(true)
    // Without a word, as a process does that is killed: the default would keep them for minutes.
    await bench.isolation.close({ endPods: false })
    await until('the cradle has ended', () => !isAlive(pid))
    if (isRoot) expect(pidsOfUid(pod.hostUid)).toEqual([])
  })

  it('keeps pods without a main until the time it was told, not longer', async () => {
    const bench = openWorkbench('bubblewrap + compiled supervisor', { idleShutdownMs: 1 })
    onTestFinished(() => bench[Symbol.asyncDispose]())
    const pod = bench.pod()
    await bench.isolation.preparePod(pod)
    await bench.isolation.launch(bench.plan(pod, 'exec sleep 600'))
    const pid = cradlePid(bench.dataDir)
    const untilMs = Date.now() + 1_500
    await bench.isolation.keepUntil(new Date(untilMs))
    await bench.isolation.close({ endPods: false })
    await until('the cradle has ended', () => !isAlive(pid))
    expect(Date.now()).toBeGreaterThanOrEqual(untilMs)
  })

  it('ends pods and cradle when their data directory is gone and no main is there', async () => {
    const bench = openWorkbench('bubblewrap + compiled supervisor')
    const pod = bench.pod()
    await bench.isolation.preparePod(pod)
    await bench.isolation.launch(bench.plan(pod, 'exec sleep 600'))
    const pid = cradlePid(bench.dataDir)
    await bench.isolation.close({ endPods: false })
    rmSync(bench.dataDir, { recursive: true })
    await until('the cradle has ended', () => !isAlive(pid))
    if (isRoot) expect(pidsOfUid(pod.hostUid)).toEqual([])
  })

  it('works in a data directory whose path is longer than a socket address', async () => {
    const bench = openWorkbench('bubblewrap + compiled supervisor', { below: 'long-'.repeat(30) })
    onTestFinished(() => bench[Symbol.asyncDispose]())
    const cell = await bench.start('exec sleep 600')
    expect(await bench.run(cell, 'echo reached')).toMatchObject({ stdout: 'reached\n' })
  })
})

function cradlePid(dataDir: string): number {
  return Number(readFileSync(join(dataDir, 'cradle', 'cradle.pid'), 'utf8'))
}
