import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { isFinalPhase, TasksClient, type TaskView } from '@corral/protocol'
import { AgentTasks, SandboxWarmPools } from '@corral/resources'
import { type BenchOptions, part, progress, readBenchOptions } from './common/bench-options.js'
import { type CorralProcess, startCorral } from './common/corral-process.js'
import { cpuSeconds } from './common/memory.js'
import { Recorder } from './common/result-file.js'
import { median } from './common/samples.js'
import { withScratch } from './common/scratch.js'
import { until } from './common/until.js'
import { followUpStartsMs } from './follow-ups.js'
import { commandTask, startIdleTasks, taskOverheadMs } from './task-requests.js'

interface PlatformReady {
  url: string
  token: string
  kubeconfig: string
}
type Platform = CorralProcess<PlatformReady>

/** What tasks on a repository of 50 MB cost beside their agents, and how soon they are decided after a crash. */
async function main(): Promise<void> {
  const options = readBenchOptions()
  const recorder = new Recorder('tasks', options)
  await withScratch(async (directory) => {
    const repository = makeLargeRepository(join(directory, 'repository'))
    await part(options, 'overhead', () => measureOverhead(recorder, directory, repository, options))
    await part(options, 'checkpoints', () => measureCheckpoints(recorder, directory, repository, options))
    await part(options, 'follow-ups', () => measureFollowUps(recorder, directory, repository, options))
    await part(options, 'crash', () => measureCrash(recorder, directory, repository))
  })
  recorder.finish()
}

/** 500 files of 100 kB that do not compress. */
function makeLargeRepository(directory: string): string {
  mkdirSync(directory, { recursive: true })
  const git = (...args: string[]): void => {
    const identity = ['-c', 'user.name=Bench', '-c', 'user.email=bench@example.com']
    execFileSync('git', [...identity, ...args], { cwd: directory, stdio: 'ignore' })
  }
  git('init', '--quiet', '--initial-branch=main')
  for (let index = 0; index < 500; index += 1) {
    const folder = join(directory, `part-${index % 25}`)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `${index}.bin`), randomBytes(100_000))
  }
  git('add', '.')
  git('commit', '--quiet', '-m', 'start')
  return directory
}

function startPlatform(dataDir: string): Promise<Platform> {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const flags = ['--port', '0', '--api-port', '0', '--agent', 'command', '--max-tasks', '10']
  return startCorral(['up', '--data-dir', dataDir, ...flags], dataDir)
}

async function warmSandboxesReady({ ready }: Platform): Promise<void> {
  const client = kubeClientFromConfig(await loadKubeConfig({ path: ready.kubeconfig }))
  try {
    await until('two warm sandboxes', async () => {
      const pool = await client.get(SandboxWarmPools, { name: 'default', namespace: 'corral' })
      return (pool.status?.readyReplicas ?? 0) >= 2
    })
  } finally {
    await client.close()
  }
}

async function measureOverhead(
  recorder: Recorder,
  directory: string,
  repository: string,
  options: BenchOptions,
): Promise<void> {
  const platform = await startPlatform(join(directory, 'overhead'))
  const overheadsMs: number[] = []
  try {
    // The first one makes the mirror.
    for (let round = -1; round < (options.isFull ? 30 : 10); round += 1) {
      await warmSandboxesReady(platform)
      const overheadMs = await taskOverheadMs(platform.ready, repository)
      if (round >= 0) overheadsMs.push(overheadMs)
    }
  } finally {
    await platform.stop()
  }
  recorder.samples('overhead ms', overheadsMs)
  recorder.row({
    measure: 'a warm task beyond the agent’s own run, repository of 50 MB, p50',
    unit: 'ms',
    values: { corral: median(overheadsMs) },
    required: '< 500',
    isMet: median(overheadsMs) < 500,
  })
}

async function measureFollowUps(
  recorder: Recorder,
  directory: string,
  repository: string,
  options: BenchOptions,
): Promise<void> {
  const platform = await startPlatform(join(directory, 'follow-ups'))
  const rounds = options.isFull ? 30 : 5
  const beforeEach = (): Promise<void> => warmSandboxesReady(platform)
  try {
    for (const [where, holdSeconds, limitMs] of [
      ['on a held sandbox', 600, 300],
      ['on a new sandbox', 0, 1000],
    ] as const) {
      const startsMs = await followUpStartsMs(platform.ready, repository, { rounds, holdSeconds, beforeEach })
      recorder.samples(`follow-up ${where} ms`, startsMs)
      recorder.row({
        measure: `a message until its agent runs, ${where}, repository of 50 MB, p50`,
        unit: 'ms',
        values: { corral: median(startsMs) },
        required: `< ${limitMs}`,
        isMet: median(startsMs) < limitMs,
      })
    }
  } finally {
    await platform.stop()
  }
}

/** A fixed piece of work that also changes the tree all the time. */
const busyWork =
  'i=0; while [ $i -lt 60 ]; do cat part-*/*.bin | sha256sum > sum.txt; echo $i > part-0/$i.txt; i=$((i+1)); done'

interface Run {
  agentMs: number
  mainCpuMs: number
  checkpoints: number
}

async function measureCheckpoints(
  recorder: Recorder,
  directory: string,
  repository: string,
  options: BenchOptions,
): Promise<void> {
  const dataDir = join(directory, 'checkpoints')
  const platform = await startPlatform(dataDir)
  const runs: Record<'with' | 'without', Run[]> = { with: [], without: [] }
  try {
    await runWork(platform, dataDir, repository, 0)
    // In turn, so that a machine that gets busier or quieter does so for both.
    for (let round = 0; round < (options.isFull ? 10 : 3); round += 1) {
      progress(`checkpoints, round ${round + 1}`)
      runs.without.push(await runWork(platform, dataDir, repository, 0))
      runs.with.push(await runWork(platform, dataDir, repository, 1))
    }
  } finally {
    await platform.stop()
  }
  const agentMs = (kind: 'with' | 'without'): number => median(runs[kind].map((run) => run.agentMs))
  const taken = runs.with.reduce((sum, run) => sum + run.checkpoints, 0)
  const cpuMs = (kind: 'with' | 'without'): number => median(runs[kind].map((run) => run.mainCpuMs))
  const perRun = median(runs.with.map((run) => run.checkpoints))
  // Of the same size as what main does for any task: a difference below zero is noise and stays visible.
  const eachMs = (cpuMs('with') - cpuMs('without')) / Math.max(1, perRun)
  const ratio = agentMs('with') / agentMs('without')
  recorder.samples(
    'agent with checkpoints ms',
    runs.with.map((run) => run.agentMs),
  )
  recorder.samples(
    'agent without checkpoints ms',
    runs.without.map((run) => run.agentMs),
  )
  recorder.samples(
    'checkpoints taken',
    runs.with.map((run) => run.checkpoints),
  )
  recorder.row({
    measure: 'processor time of main for one checkpoint, repository of 50 MB',
    unit: 'ms',
    values: { corral: eachMs, 'a task with': cpuMs('with'), 'a task without': cpuMs('without') },
    required: '< 100',
    isMet: taken > 0 && eachMs < 100,
  })
  recorder.row({
    measure: 'the agent’s own time, checkpoints as often as they are allowed',
    unit: 'ms',
    values: { with: agentMs('with'), without: agentMs('without') },
    ratio,
    required: '<= 1.05 ×',
    isMet: taken > 0 && ratio <= 1.05,
  })
}

async function runWork(platform: Platform, dataDir: string, repository: string, seconds: number): Promise<Run> {
  await warmSandboxesReady(platform)
  const client = new TasksClient({ baseUrl: platform.ready.url, token: platform.ready.token })
  const cpuBefore = cpuSeconds(platform.pid)
  const { id } = await client.create({ ...commandTask(repository, busyWork), checkpoint_seconds: seconds })
  const kube = kubeClientFromConfig(await loadKubeConfig({ path: platform.ready.kubeconfig }))
  const { metadata } = await kube.get(AgentTasks, { namespace: 'corral', name: id })
  await kube.close()
  const bundle = join(dataDir, 'tasks', metadata.uid, 'checkpoints', 'result.bundle')
  let checkpoints = 0
  let lastMs = 0
  const timer = setInterval(() => {
    const changedMs = existsSync(bundle) ? (statSync(bundle, { throwIfNoEntry: false })?.mtimeMs ?? 0) : 0
    if (changedMs > lastMs) checkpoints += 1
    lastMs = Math.max(lastMs, changedMs)
  }, 50)
  const task = await client.wait(id).finally(() => clearInterval(timer))
  if (task.status !== 'SUCCEEDED') throw new Error(`the task ended as ${task.status}: ${JSON.stringify(task.cause)}`)
  return { agentMs: agentTimeMs(task), mainCpuMs: (cpuSeconds(platform.pid) - cpuBefore) * 1000, checkpoints }
}

function agentTimeMs({ times }: TaskView): number {
  return Date.parse(times?.agent_finished_at ?? '') - Date.parse(times?.running_at ?? '')
}

/** Main and cradle die under ten running agents: until when is it known what became of each? */
async function measureCrash(recorder: Recorder, directory: string, repository: string): Promise<void> {
  const dataDir = join(directory, 'crash')
  const before = await startPlatform(dataDir)
  const ids = await startIdleTasks(before.ready, repository, 10)
  process.kill(Number(readFileSync(join(dataDir, 'cradle', 'cradle.pid'), 'utf8')), 'SIGKILL')
  await before.kill()
  const restartedAt = performance.now()
  const after = await startPlatform(dataDir)
  try {
    const client = new TasksClient({ baseUrl: after.ready.url, token: after.ready.token })
    const isDecided = async (id: string): Promise<boolean> => isFinalPhase((await client.get(id)).status)
    const areDecided = async (): Promise<boolean> => (await Promise.all(ids.map(isDecided))).every(Boolean)
    await until('ten tasks decided', areDecided, 300_000)
    const tookMs = performance.now() - restartedAt
    recorder.row({
      measure: 'ten tasks decided after kill -9 of main and cradle, from the restart',
      unit: 'ms',
      values: { corral: tookMs },
      required: '< 10000',
      isMet: tookMs < 10_000,
    })
  } finally {
    await after.stop()
  }
}

await main()
