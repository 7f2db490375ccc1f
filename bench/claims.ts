import { join } from 'node:path'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { Sandboxes, SandboxTemplates, SandboxWarmPools } from '@corral/resources'
import { type ClaimFigures, ClaimLoad, fillPool, membersReady, perSecond } from './claim-load.js'
import {
  type ClaimStack,
  type ManagerName,
  startCorralController,
  startEmbeddedStack,
  startRealStack,
} from './claim-stacks.js'
import { startEmbedded } from './common/api-target.js'
import { type BenchOptions, part, progress, readBenchOptions } from './common/bench-options.js'
import { cpuSeconds, pssMb } from './common/memory.js'
import { Recorder } from './common/result-file.js'
import { median, percentile } from './common/samples.js'
import { withScratch } from './common/scratch.js'
import { until } from './common/until.js'
import { startWorker } from './common/worker.js'
import { countWrites, type WriteBudget } from './write-budget.js'

/**
 * Claims from a warm pool: our manager and upstream's on a real kube-apiserver, and ours on the embedded API, with the
 * same instant node and the same client, everything on this machine.
 */
async function main(): Promise<void> {
  const options = readBenchOptions()
  const recorder = new Recorder('claims', options)
  await withScratch(async (directory) => {
    await part(options, 'real', () => measureReal(recorder, directory, options))
    await part(options, 'writes', () => measureWrites(recorder, directory, options))
    await part(options, 'embedded', () => measureEmbedded(recorder, directory, options))
    await part(options, 'idle', () => measureIdle(recorder, directory, options))
  })
  recorder.finish()
}

const cpuMsOf = ({ pids }: ClaimStack): number => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0) * 1000

interface RealFigures {
  fillMs: number[]
  /** Processor time of all servers per claim of the offered load, refills included. */
  cpuMs: number[]
  bursts: ClaimFigures[]
  offered: ClaimFigures[]
}

async function measureReal(recorder: Recorder, directory: string, options: BenchOptions): Promise<void> {
  const managers: ManagerName[] = options.withoutPeers ? ['corral'] : ['corral', 'upstream']
  const figures = new Map(
    managers.map((name): [ManagerName, RealFigures] => [name, { fillMs: [], cpuMs: [], bursts: [], offered: [] }]),
  )
  for (let round = 0; round < (options.isFull ? 3 : 1); round += 1)
    for (const manager of managers) {
      progress(`real API server, ${manager}, round ${round + 1}`)
      const stack = await startRealStack({ manager, directory })
      Object.assign(recorder.versions, stack.versions)
      try {
        await measureOnReal(stack, figures.get(manager) ?? { fillMs: [], cpuMs: [], bursts: [], offered: [] }, options)
      } finally {
        await stack.stop()
      }
    }
  reportReal(recorder, figures)
}

async function measureOnReal(stack: ClaimStack, figures: RealFigures, options: BenchOptions): Promise<void> {
  const { client } = stack
  const load = new ClaimLoad(client)
  try {
    await load.synced
    figures.fillMs.push(await fillPool(client, 350))
    figures.bursts.push(await load.burst('burst', 300))
    await membersReady(client, 350)
    await load.quiet()
    const before = cpuMsOf(stack)
    const offered = await load.offered('offered', 15, options.isFull ? 20_000 : 8_000)
    figures.cpuMs.push((cpuMsOf(stack) - before) / offered.latenciesMs.length)
    figures.offered.push(offered)
  } finally {
    await load.stop()
  }
}

function reportReal(recorder: Recorder, figures: ReadonlyMap<ManagerName, RealFigures>): void {
  const by = (read: (found: RealFigures) => number): Record<string, number> =>
    Object.fromEntries([...figures].map(([name, found]) => [name, read(found)]))
  const latency = (all: readonly ClaimFigures[], share: number): number =>
    percentile(
      all.flatMap(({ latenciesMs }) => latenciesMs),
      share,
    )
  for (const [name, found] of figures) {
    recorder.samples(`fill ${name} ms`, found.fillMs)
    recorder.samples(`cpu ${name} ms`, found.cpuMs)
    recorder.samples(`burst ${name} per s`, found.bursts.map(perSecond))
    recorder.samples(
      `burst ${name} ms`,
      found.bursts.flatMap(({ latenciesMs }) => latenciesMs),
    )
    recorder.samples(
      `offered ${name} ms`,
      found.offered.flatMap(({ latenciesMs }) => latenciesMs),
    )
  }
  const row = (
    measure: string,
    unit: string,
    values: Record<string, number>,
    required?: string,
    atLeast = false,
  ): void => {
    const ratio = (values.corral ?? Number.NaN) / (values.upstream ?? Number.NaN)
    const isMet = atLeast ? ratio >= 1 : ratio <= 1
    const verdict = required && figures.has('upstream') ? { required, isMet } : {}
    recorder.row({ measure, unit, values, ...(figures.has('upstream') ? { ratio } : {}), ...verdict })
  }
  const onReal = 'real API server'
  row(
    `${onReal}: burst of 300 from a pool of 350`,
    'claims/s',
    by((found) => median(found.bursts.map(perSecond))),
    '>= upstream (goal 3 ×)',
    true,
  )
  row(
    `${onReal}: burst of 300, created → Ready p99`,
    'ms',
    by((found) => latency(found.bursts, 0.99)),
  )
  row(
    `${onReal}: 15 claims/s offered, created → Ready p50`,
    'ms',
    by((found) => latency(found.offered, 0.5)),
    '<= upstream (goal 0.5 ×)',
  )
  row(
    `${onReal}: 15 claims/s offered, created → Ready p99`,
    'ms',
    by((found) => latency(found.offered, 0.99)),
    '<= upstream (goal 0.5 ×)',
  )
  row(
    `${onReal}: pool of 350 filled from nothing`,
    'ms',
    by((found) => median(found.fillMs)),
    '<= upstream (goal 0.5 ×)',
  )
  row(
    'processor time of all servers per claim at 15/s, refill included',
    'ms',
    by((found) => median(found.cpuMs)),
  )
}

async function measureWrites(recorder: Recorder, directory: string, options: BenchOptions): Promise<void> {
  const managers: ManagerName[] = options.withoutPeers ? ['corral'] : ['corral', 'upstream']
  const budgets = new Map<ManagerName, WriteBudget>()
  for (const manager of managers) budgets.set(manager, await countWrites(manager, directory))
  for (const [name, { warmWrites, coldWrites }] of budgets) {
    recorder.note(`${name}, 20 warm claims: ${listed(warmWrites)}`)
    recorder.note(`${name}, 20 cold Sandboxes: ${listed(coldWrites)}`)
  }
  const row = (measure: string, read: (budget: WriteBudget) => number): void => {
    const values = Object.fromEntries([...budgets].map(([name, budget]) => [name, read(budget)]))
    const ratio = (values.corral ?? Number.NaN) / (values.upstream ?? Number.NaN)
    const verdict = budgets.has('upstream') ? { ratio, required: 'not above upstream', isMet: ratio <= 1 } : {}
    recorder.row({ measure, unit: '', values, ...verdict })
  }
  row('API writes per warm claim, without Events', ({ perWarmClaim }) => perWarmClaim)
  row('API writes per cold Sandbox, without Events', ({ perColdSandbox }) => perColdSandbox)
}

const listed = (writes: Record<string, number>): string =>
  Object.entries(writes)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, times]) => `${name} × ${times}`)
    .join(', ')

const lanes = 64
const offeredRate = 300
const hopedRate = 800

interface EmbeddedRound {
  replicas: number
  fillMs: number
  /** Of API server and manager, per claim of the sustained load. */
  cpuMs: number
  sustained: ClaimFigures
  /** Where the pool is large enough for a schedule after it. */
  offered: ClaimFigures | undefined
}

/** Rounds on a fresh stack each: a machine that stood still for a moment spoils one of them, not the figure. */
async function measureEmbedded(recorder: Recorder, directory: string, options: BenchOptions): Promise<void> {
  const seconds = options.isFull ? 10 : 3
  const rounds: EmbeddedRound[] = []
  for (let round = 1; round <= (options.isFull ? 3 : 1); round += 1)
    rounds.push(await embeddedRound(directory, { seconds, refill: false, name: `round ${round}` }))
  const of = (read: (round: EmbeddedRound) => number): number => median(rounds.map(read))
  const p = (share: number) => (round: EmbeddedRound) => percentile(round.offered?.latenciesMs ?? [], share)
  for (const { sustained, offered } of rounds) {
    recorder.samples('embedded sustained, refill off ms', sustained.latenciesMs)
    recorder.samples('embedded offered 300/s ms', offered?.latenciesMs ?? [])
  }
  const each = (read: (round: EmbeddedRound) => number): string =>
    rounds.map((round) => read(round).toFixed(0)).join(', ')
  recorder.note(
    `embedded, refill off, by round: ${each((round) => perSecond(round.sustained))} claims/s; p99 at ${offeredRate}/s ${each(p(0.99))} ms`,
  )
  const rate = of((round) => perSecond(round.sustained))
  recorder.row({
    measure: `embedded: claims for ${seconds} s, refill off, ${lanes} in flight`,
    unit: 'claims/s',
    values: { corral: rate },
    required: '500 (goal 1,000)',
    isMet: rate >= 500,
  })
  reportCpu(
    recorder,
    'refill off',
    of(({ cpuMs }) => cpuMs),
  )
  recorder.row({
    measure: `embedded: pool of ${rounds[0]?.replicas ?? 0} filled`,
    unit: 'ms',
    values: { corral: of(({ fillMs }) => fillMs) },
  })
  const offered = 'embedded: 300 claims/s offered, created → Ready'
  recorder.row({ measure: `${offered} p50`, unit: 'ms', values: { corral: of(p(0.5)) } })
  recorder.row({
    measure: `${offered} p99`,
    unit: 'ms',
    values: { corral: of(p(0.99)) },
    required: '< 100 (goal < 50)',
    isMet: of(p(0.99)) < 100,
  })
  const refilled = await embeddedRound(directory, { seconds, refill: true, name: 'refill on' })
  recorder.samples('embedded sustained, refill on ms', refilled.sustained.latenciesMs)
  recorder.row({
    measure: `embedded: claims for ${seconds} s, refill on, ${lanes} in flight`,
    unit: 'claims/s',
    values: { corral: perSecond(refilled.sustained) },
  })
  reportCpu(recorder, 'refill on', refilled.cpuMs)
}

function reportCpu(recorder: Recorder, name: string, cpuMs: number): void {
  const measure = `embedded: processor time of API server and manager per claim, ${name}`
  recorder.row({ measure, unit: 'ms', values: { corral: cpuMs } })
}

async function embeddedRound(
  directory: string,
  { seconds, refill, name }: { seconds: number; refill: boolean; name: string },
): Promise<EmbeddedRound> {
  const stack = await startEmbeddedStack({ directory, refill })
  const load = new ClaimLoad(stack.client)
  try {
    await load.synced
    // Enough for the rate we hope for and for the schedule after it.
    const replicas = refill ? 500 : seconds * (hopedRate + offeredRate)
    progress(`embedded, a pool of ${replicas}, ${name}`)
    const fillMs = await fillPool(stack.client, replicas)
    const before = cpuMsOf(stack)
    const sustained = await load.sustained('sustained', lanes, seconds * 1000, seconds * hopedRate)
    const cpuMs = (cpuMsOf(stack) - before) / sustained.latenciesMs.length
    if (refill) return { replicas, fillMs, cpuMs, sustained, offered: undefined }
    await load.atRest()
    const offered = await load.offered('offered', offeredRate, seconds * 1000)
    return { replicas, fillMs, cpuMs, sustained, offered }
  } finally {
    await load.stop()
    await stack.stop()
  }
}

/** `corral controller` over TLS with many Sandboxes at rest: what it holds, and what it writes when it starts anew. */
async function measureIdle(recorder: Recorder, directory: string, options: BenchOptions): Promise<void> {
  const replicas = options.isFull ? 10_000 : 1_000
  const server = await startEmbedded(join(directory, 'idle'))
  const client = kubeClientFromConfig(await loadKubeConfig({ path: server.kubeconfig }))
  const node = await startWorker(new URL('./instant-node-worker.ts', import.meta.url), [server.kubeconfig])
  const flags = ['--sandbox-warm-pool-max-batch-size=1000']
  let manager = await startCorralController(server.kubeconfig, directory, flags)
  try {
    await fillPool(client, replicas)
    await new Promise((resolve) => setTimeout(resolve, 5_000))
    await manager.stop()
    const version = async (): Promise<number> =>
      Number((await client.list(SandboxTemplates, { limit: 1 })).metadata.resourceVersion)
    const before = await version()
    manager = await startCorralController(server.kubeconfig, directory, flags)
    await until('the restarted manager at rest', async () => {
      const pool = await client.get(SandboxWarmPools, { name: 'pool', namespace: 'default' })
      return (pool.status?.readyReplicas ?? 0) === replicas
    })
    await new Promise((resolve) => setTimeout(resolve, options.isFull ? 20_000 : 8_000))
    const { items } = await client.list(Sandboxes, { namespace: 'default' })
    const writes = (await version()) - before
    const memory = pssMb(manager.pid)
    recorder.row({
      measure: `${items.length} idle Sandboxes: memory of the manager (PSS)`,
      unit: 'MB',
      values: { corral: memory },
      required: '< 400 at 10,000',
      ...(options.isFull ? { isMet: memory < 400 } : {}),
    })
    recorder.row({
      measure: `${items.length} idle Sandboxes: API writes after a restart of the manager`,
      unit: '',
      values: { corral: writes },
      required: '0',
      isMet: writes === 0,
    })
  } finally {
    await manager.stop()
    await node.stop()
    await client.close()
    await server.stop()
  }
}

await main()
