import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { SandboxWarmPools } from '@corral/resources'
import { type BenchOptions, part, progress, readBenchOptions } from './common/bench-options.js'
import { type CorralProcess, startCorral } from './common/corral-process.js'
import { processesNaming, processTree, pssMb } from './common/memory.js'
import { Recorder } from './common/result-file.js'
import { median, percentile } from './common/samples.js'
import { withScratch } from './common/scratch.js'
import { until } from './common/until.js'
import { measureSandboxStarts } from './sandbox-starts.js'
import { makeRepository, postTasks, startIdleTasks, taskOverheadMs } from './task-requests.js'

interface PlatformReady {
  url: string
  token: string
  kubeconfig: string
  pid: number
  isolation: string
}

/** `corral up` as a user starts it: how soon it is ready, what it weighs, how fast sandboxes and tasks start on it. */
async function main(): Promise<void> {
  const options = readBenchOptions()
  const recorder = new Recorder('platform', options)
  await withScratch(async (directory) => {
    await part(options, 'up', () => measureUp(recorder, directory, options))
    await part(options, 'sandboxes', () => measureSandboxes(recorder, directory, options))
    await part(options, 'tasks', () => measureTasks(recorder, directory, options))
  })
  recorder.finish()
}

function startPlatform(dataDir: string, flags: readonly string[] = []): Promise<CorralProcess<PlatformReady>> {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const ports = ['--port', '0', '--api-port', '0']
  return startCorral(['up', '--data-dir', dataDir, ...ports, '--agent', 'command', ...flags], dataDir)
}

async function measureUp(recorder: Recorder, directory: string, options: BenchOptions): Promise<void> {
  const rounds = options.isFull ? 10 : 3
  const firstMs: number[] = []
  const laterMs: number[] = []
  const idleMb: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const dataDir = join(directory, `up-${round}`)
    const first = await startPlatform(dataDir)
    firstMs.push(first.startMs)
    recorder.versions.isolation = first.ready.isolation
    try {
      await warmSandboxesReady(first.ready.kubeconfig)
      await new Promise((resolve) => setTimeout(resolve, options.isFull ? 15_000 : 4_000))
      const pids = new Set([first.pid, ...processesNaming(dataDir)].flatMap(processTree))
      idleMb.push([...pids].reduce((sum, pid) => sum + pssMb(pid), 0))
    } finally {
      await first.stop()
    }
    const later = await startPlatform(dataDir)
    laterMs.push(later.startMs)
    await later.stop()
  }
  recorder.samples('up first ms', firstMs)
  recorder.samples('up later ms', laterMs)
  recorder.samples('idle MB', idleMb)
  const upRow = { unit: 'ms', required: '< 1500' }
  const isQuick = (samples: readonly number[]): boolean => median(samples) < 1500
  recorder.row({
    measure: '`corral up` to ready, empty data directory',
    ...upRow,
    values: { corral: median(firstMs) },
    isMet: isQuick(firstMs),
  })
  recorder.row({
    measure: '`corral up` to ready, existing data',
    ...upRow,
    values: { corral: median(laterMs) },
    isMet: isQuick(laterMs),
  })
  recorder.row({
    measure: 'memory idle of everything, two warm sandboxes (PSS)',
    unit: 'MB',
    values: { corral: median(idleMb) },
    required: '< 250',
    isMet: median(idleMb) < 250,
  })
}

async function warmSandboxesReady(kubeconfig: string): Promise<void> {
  const client = kubeClientFromConfig(await loadKubeConfig({ path: kubeconfig }))
  try {
    await until('two warm sandboxes', async () => {
      const pool = await client.get(SandboxWarmPools, { name: 'default', namespace: 'corral' })
      return (pool.status?.readyReplicas ?? 0) >= 2
    })
  } finally {
    await client.close()
  }
}

async function measureSandboxes(recorder: Recorder, directory: string, options: BenchOptions): Promise<void> {
  const platform = await startPlatform(join(directory, 'sandboxes'))
  try {
    const starts = await measureSandboxStarts({
      kubeconfig: platform.ready.kubeconfig,
      directory,
      rounds: options.isFull ? 60 : 15,
    })
    for (const [name, samples] of Object.entries(starts)) recorder.samples(name, samples)
    const raw = median(starts.rawBwrapMs)
    const cold = median(starts.coldExecMs)
    const warm = median(starts.warmExecMs)
    recorder.row({
      measure: 'claim → first output of `pods/exec`, cold, p50',
      unit: 'ms',
      values: { corral: cold, 'raw bwrap': raw },
      ratio: cold / raw,
      required: '<= 60 and <= 8 × raw bwrap',
      isMet: cold <= 60 && cold / raw <= 8,
    })
    recorder.row({
      measure: 'claim → first output of `pods/exec`, warm, p50',
      unit: 'ms',
      values: { corral: warm },
      required: '<= 25',
      isMet: warm <= 25,
    })
    const more: [string, readonly number[]][] = [
      ['claim → Ready, cold, p50', starts.coldReadyMs],
      ['claim → Ready, warm, p50', starts.warmReadyMs],
      ['claim → daemon answers, cold, p50', starts.coldDaemonMs],
      ['claim → daemon answers, warm, p50', starts.warmDaemonMs],
    ]
    for (const [measure, samples] of more) recorder.row({ measure, unit: 'ms', values: { corral: median(samples) } })
    recorder.row({
      measure: 'claim → first output of `pods/exec`, cold, p99',
      unit: 'ms',
      values: { corral: percentile(starts.coldExecMs, 0.99), 'raw bwrap': percentile(starts.rawBwrapMs, 0.99) },
    })
    recorder.row({
      measure: 'claim → first output of `pods/exec`, warm, p99',
      unit: 'ms',
      values: { corral: percentile(starts.warmExecMs, 0.99) },
    })
  } finally {
    await platform.stop()
  }
}

async function measureTasks(recorder: Recorder, directory: string, options: BenchOptions): Promise<void> {
  const repository = makeRepository(join(directory, 'repository'))
  const load = { repository, ratePerSecond: 200, durationMs: options.isFull ? 20_000 : 5_000 }
  const paused = await startPlatform(join(directory, 'paused'), ['--max-tasks', '0'])
  let pausedMs: number[]
  try {
    await postTasks(paused.ready, { ...load, ratePerSecond: 50, durationMs: 1_000 })
    pausedMs = await postTasks(paused.ready, load)
  } finally {
    await paused.stop()
  }
  const busy = await startPlatform(join(directory, 'busy'), ['--max-tasks', '10'])
  const overheadsMs: number[] = []
  let busyMs: number[]
  try {
    for (let round = -1; round < (options.isFull ? 20 : 4); round += 1) {
      await warmSandboxesReady(busy.ready.kubeconfig)
      const overheadMs = await taskOverheadMs(busy.ready, repository)
      if (round >= 0) overheadsMs.push(overheadMs)
    }
    progress('tasks, with ten running')
    await startIdleTasks(busy.ready, repository, 10)
    busyMs = await postTasks(busy.ready, load)
  } finally {
    await busy.stop()
  }
  recorder.samples('POST /tasks paused ms', pausedMs)
  recorder.samples('POST /tasks busy ms', busyMs)
  recorder.samples('task overhead ms', overheadsMs)
  recorder.row({
    measure: '`POST /tasks` p50 at 200/s, admission paused',
    unit: 'ms',
    values: { corral: percentile(pausedMs, 0.5) },
  })
  recorder.row({
    measure: '`POST /tasks` p99 at 200/s, admission paused',
    unit: 'ms',
    values: { corral: percentile(pausedMs, 0.99) },
    required: '< 20',
    isMet: percentile(pausedMs, 0.99) < 20,
  })
  recorder.row({
    measure: '`POST /tasks` p50 at 200/s, ten tasks running',
    unit: 'ms',
    values: { corral: percentile(busyMs, 0.5) },
  })
  recorder.row({
    measure: '`POST /tasks` p99 at 200/s, ten tasks running',
    unit: 'ms',
    values: { corral: percentile(busyMs, 0.99) },
  })
  recorder.row({
    measure: 'a warm task beyond the agent’s own run, p50',
    unit: 'ms',
    values: { corral: median(overheadsMs) },
    required: '< 1000',
    isMet: median(overheadsMs) < 1000,
  })
}

await main()
