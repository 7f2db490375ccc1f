import { join } from 'node:path'
import { type ApiTarget, startEmbedded, startReal } from './common/api-target.js'
import { type BenchOptions, part, progress, readBenchOptions } from './common/bench-options.js'
import { type LoadClient, startLoadClient } from './common/load-client.js'
import type { LoadResult } from './common/load-jobs.js'
import { cpuSeconds, pssMb } from './common/memory.js'
import { Recorder } from './common/result-file.js'
import { median, percentile } from './common/samples.js'
import { withScratch } from './common/scratch.js'
import { survivesKills } from './survives-kills.js'

/**
 * The embedded API server against kube-apiserver with etcd: both on loopback with TLS, both durable, both idle while
 * the other is measured, loaded by the same process in interleaved rounds.
 */
async function main(): Promise<void> {
  const options = readBenchOptions()
  const recorder = new Recorder('apiserver', options)
  const load = startLoadClient()
  try {
    await withScratch(async (directory) => {
      await part(options, 'start', () => measureStart(recorder, directory, options))
      await part(options, 'requests', () => measureRequests(recorder, load, directory, options))
      await part(options, 'objects', () => measureObjects(recorder, load, directory, options))
      await part(options, 'kills', () => measureKills(recorder, load, directory, options))
    })
  } finally {
    await load.stop()
  }
  recorder.finish()
}

const namespace = 'default'

async function measureStart(recorder: Recorder, directory: string, options: BenchOptions): Promise<void> {
  const rounds = options.isFull ? 15 : 3
  const startsMs: Record<string, number[]> = { embedded: [], real: [] }
  const restartsMs: number[] = []
  const idleMb: Record<string, number[]> = { embedded: [], real: [] }
  for (let round = 0; round < rounds; round += 1) {
    const dataDir = join(directory, `start-${round}`)
    const embedded = await startEmbedded(dataDir)
    startsMs.embedded?.push(embedded.startMs)
    await settle(options)
    idleMb.embedded?.push(sumPss(embedded))
    await embedded.stop()
    const again = await startEmbedded(dataDir)
    restartsMs.push(again.startMs)
    await again.stop()
    if (options.withoutPeers || round >= Math.ceil(rounds / 2)) continue
    const real = await startReal()
    Object.assign(recorder.versions, real.versions)
    startsMs.real?.push(real.startMs)
    await settle(options)
    idleMb.real?.push(sumPss(real))
    await real.stop()
  }
  recorder.samples('start embedded ms', startsMs.embedded ?? [])
  recorder.samples('restart embedded ms', restartsMs)
  recorder.samples('start real ms', startsMs.real ?? [])
  const embeddedMs = median(startsMs.embedded ?? [])
  const idle = median(idleMb.embedded ?? [])
  recorder.row({
    measure: 'start to ready, empty data directory',
    unit: 'ms',
    values: { embedded: embeddedMs, real: median(startsMs.real ?? []) },
    ratio: embeddedMs / median(startsMs.real ?? []),
    required: '< 400 (goal 200)',
    isMet: embeddedMs < 400,
  })
  recorder.row({ measure: 'start to ready, existing data', unit: 'ms', values: { embedded: median(restartsMs) } })
  recorder.row({
    measure: 'memory idle (PSS)',
    unit: 'MB',
    values: { embedded: idle, real: median(idleMb.real ?? []) },
    ratio: idle / median(idleMb.real ?? []),
    required: '< 130',
    isMet: idle < 130,
  })
}

async function measureRequests(
  recorder: Recorder,
  load: LoadClient,
  directory: string,
  options: BenchOptions,
): Promise<void> {
  const rounds = options.isFull ? 8 : 5
  const roundMs = options.isFull ? 5_000 : 1_500
  const targets: ApiTarget[] = [await startEmbedded(join(directory, 'requests'))]
  try {
    if (!options.withoutPeers) targets.push(await startReal())
    const figures = new Map(targets.map((target) => [target.name, new RequestFigures()]))
    for (const target of targets) {
      await load.run(target, { kind: 'create', namespace, prefix: 'warm', count: 2_000 })
      await load.run(target, { kind: 'get', namespace, names: names('warm', 2_000), durationMs: 500 })
    }
    for (let round = 0; round < rounds; round += 1) {
      progress(`requests, round ${round + 1} of ${rounds}`)
      for (const target of targets) {
        const figure = figures.get(target.name)
        const job = { namespace, durationMs: roundMs }
        const create = { kind: 'create', prefix: `c${round}`, ...job } as const
        const get = { kind: 'get', names: names('warm', 2_000), ...job } as const
        figure?.creates.push(await withCpu(target, figure.createCpuMs, () => load.run(target, create)))
        figure?.gets.push(await withCpu(target, figure.getCpuMs, () => load.run(target, get)))
        figure?.busy.push(succeeded(await load.run(target, { kind: 'watch', prefix: `w${round}`, ...job })))
        for (const [kind, ratePerSecond] of offered) {
          const paced = { kind: 'watch', prefix: `${kind}${round}`, ...job, ratePerSecond } as const
          figure?.[kind].push(succeeded(await load.run(target, paced)))
        }
      }
    }
    reportRequests(recorder, figures)
  } finally {
    for (const target of targets) await target.stop()
  }
}

/** The second is what the real server is able to take on two cores. */
const offered = [
  ['calm', 200],
  ['steady', 700],
] as const

class RequestFigures {
  readonly creates: LoadResult[] = []
  readonly gets: LoadResult[] = []
  /** Processor time of all processes of the server for one request, by round. */
  readonly createCpuMs: number[] = []
  readonly getCpuMs: number[] = []
  /** Watched while every other connection creates. */
  readonly busy: LoadResult[] = []
  /** Watched while so many a second are created, on both servers alike. */
  readonly calm: LoadResult[] = []
  readonly steady: LoadResult[] = []
}

async function withCpu(target: ApiTarget, cpuMs: number[], run: () => Promise<LoadResult>): Promise<LoadResult> {
  const used = (): number => target.pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0)
  const before = used()
  const result = succeeded(await run())
  cpuMs.push(((used() - before) * 1000) / result.count)
  return result
}

function reportRequests(recorder: Recorder, figures: ReadonlyMap<string, RequestFigures>): void {
  const by = (read: (figure: RequestFigures) => number): Record<string, number> =>
    Object.fromEntries([...figures].map(([name, figure]) => [name, read(figure)]))
  const ratio = (values: Record<string, number>): number => (values.embedded ?? 0) / (values.real ?? Number.NaN)
  const rate = (results: readonly LoadResult[]): number =>
    median(results.map(({ count, elapsedMs }) => (count / elapsedMs) * 1000))
  const latency = (results: readonly LoadResult[], share: number): number =>
    percentile(
      results.flatMap(({ latenciesMs }) => latenciesMs),
      share,
    )
  for (const [name, figure] of figures) {
    for (const kind of ['creates', 'gets', 'busy', 'calm', 'steady'] as const) {
      recorder.samples(
        `${kind} ${name} per s`,
        figure[kind].map(({ count, elapsedMs }) => (count / elapsedMs) * 1000),
      )
      recorder.samples(
        `${kind} ${name} ms`,
        figure[kind].flatMap(({ latenciesMs }) => latenciesMs),
      )
    }
  }
  const creates = by(({ creates: results }) => rate(results))
  const gets = by(({ gets: results }) => rate(results))
  const hasPeer = figures.has('real')
  const compare = (values: Record<string, number>): { values: Record<string, number>; ratio?: number } =>
    hasPeer ? { values, ratio: ratio(values) } : { values }
  const verdict = (required: string, isMet: boolean): { required: string; isMet?: boolean } =>
    hasPeer ? { required, isMet } : { required }
  recorder.row({
    measure: 'creates, 1 KB, TLS, 16 connections, durable',
    unit: '1/s',
    ...compare(creates),
    ...verdict('3 × real (goal 5 ×)', ratio(creates) >= 3),
  })
  recorder.row({
    measure: 'gets, 1 KB, TLS, 16 connections',
    unit: '1/s',
    ...compare(gets),
    ...verdict('2 × real (goal 3 ×)', ratio(gets) >= 2),
  })
  const cpu = 'processor time of the server'
  for (const [name, figure] of figures) {
    recorder.samples(`create cpu ${name} ms`, figure.createCpuMs)
    recorder.samples(`get cpu ${name} ms`, figure.getCpuMs)
  }
  recorder.row({ measure: `${cpu} per create`, unit: 'ms', ...compare(by((figure) => median(figure.createCpuMs))) })
  recorder.row({ measure: `${cpu} per get`, unit: 'ms', ...compare(by((figure) => median(figure.getCpuMs))) })
  for (const share of [0.5, 0.99])
    recorder.row({
      measure: `create answered, p${share * 100}, 16 connections busy`,
      unit: 'ms',
      ...compare(by(({ creates: results }) => latency(results, share))),
    })
  const busy = by(({ busy: results }) => latency(results, 0.5))
  recorder.row({
    measure: 'create → watch event p50, 15 connections busy',
    unit: 'ms',
    ...compare(busy),
    ...verdict('1/5 of real (goal 2 ms)', ratio(busy) <= 0.2),
  })
  recorder.row({
    measure: 'create → watch event p99, 15 connections busy',
    unit: 'ms',
    ...compare(by(({ busy: results }) => latency(results, 0.99))),
  })
  for (const [kind, ratePerSecond] of offered)
    for (const share of [0.5, 0.99])
      recorder.row({
        measure: `create → watch event p${share * 100}, ${ratePerSecond}/s offered to both`,
        unit: 'ms',
        ...compare(by((figure) => latency(figure[kind], share))),
      })
}

async function measureObjects(
  recorder: Recorder,
  load: LoadClient,
  directory: string,
  options: BenchOptions,
): Promise<void> {
  const count = 20_000
  const dataDir = join(directory, 'objects')
  const memory: Record<string, number> = {}
  const reloaded: Record<string, number> = {}
  const embedded = await startEmbedded(dataDir)
  succeeded(await load.run(embedded, { kind: 'create', namespace, prefix: 'o', count }))
  await settle(options)
  memory.embedded = sumPss(embedded)
  await embedded.stop()
  const reloadsMs: number[] = []
  for (let round = 0; round < (options.isFull ? 7 : 3); round += 1) {
    const again = await startEmbedded(dataDir)
    reloadsMs.push(again.startMs)
    await settle(options)
    reloaded.embedded = sumPss(again)
    await again.stop()
  }
  recorder.samples('start with 20,000 objects ms', reloadsMs)
  // The peer takes half a minute to create as many.
  if (options.isFull && !options.withoutPeers) {
    const real = await startReal()
    try {
      succeeded(await load.run(real, { kind: 'create', namespace, prefix: 'o', count }))
      await settle(options)
      memory.real = sumPss(real)
    } finally {
      await real.stop()
    }
  }
  recorder.row({
    measure: 'memory after creating 20,000 objects of 1 KB (PSS)',
    unit: 'MB',
    values: memory,
    ...(memory.real ? { ratio: memory.embedded / memory.real } : {}),
    required: '< 300',
    isMet: memory.embedded < 300,
  })
  recorder.row({
    measure: 'memory after a restart with them (PSS)',
    unit: 'MB',
    values: reloaded,
    required: '< 300',
    isMet: (reloaded.embedded ?? 0) < 300,
  })
  recorder.row({
    measure: 'start to ready with 20,000 objects',
    unit: 'ms',
    values: { embedded: median(reloadsMs) },
    required: '< 1000',
    isMet: median(reloadsMs) < 1000,
  })
}

async function measureKills(
  recorder: Recorder,
  load: LoadClient,
  directory: string,
  options: BenchOptions,
): Promise<void> {
  const kills = options.isFull ? 50 : 5
  const report = await survivesKills({ dataDir: join(directory, 'kills'), load, namespace, kills })
  recorder.samples('acknowledged before each kill', report.acknowledged)
  recorder.row({
    measure: `kill -9 in a write loop × ${kills}: acknowledged writes lost`,
    unit: '',
    values: { embedded: report.lost },
    required: '0',
    isMet: report.lost === 0,
  })
  recorder.row({
    measure: `kill -9 in a write loop × ${kills}: resourceVersions used twice`,
    unit: '',
    values: { embedded: report.reused },
    required: '0',
    isMet: report.reused === 0,
  })
  const total = report.acknowledged.reduce((sum, value) => sum + value, 0)
  recorder.note(`${total} writes were acknowledged before the ${kills} kills`)
}

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
}

function succeeded(result: LoadResult): LoadResult {
  if (result.failed > 0) throw new Error(`${result.failed} requests failed, the first with: ${result.firstFailure}`)
  return result
}

function sumPss(target: ApiTarget): number {
  return target.pids.reduce((sum, pid) => sum + pssMb(pid), 0)
}

/** Garbage of the start or of a load is gone after a while without requests. */
function settle(options: BenchOptions): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, options.isFull ? 10_000 : 1_500))
}

await main()
