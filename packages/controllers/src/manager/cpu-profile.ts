import { type Profiler, Session } from 'node:inspector/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { Line, Location, Profile, Function as ProfiledFunction, Sample, StringTable, ValueType } from 'pprof-format'

/** Profiles this process for a while and answers in pprof's format. One profile at a time; a second one rejects. */
export async function cpuProfile(durationMs: number, signal: AbortSignal): Promise<Buffer> {
  if (isProfiling) throw new Error('Could not enable CPU profiling: cpu profiling already in use')
  isProfiling = true
  const session = new Session()
  session.connect()
  try {
    await session.post('Profiler.enable')
    await session.post('Profiler.start')
    await sleep(durationMs, undefined, { signal })
    const { profile } = await session.post('Profiler.stop')
    return gzipSync(encodeProfile(profile))
  } finally {
    session.disconnect()
    isProfiling = false
  }
}

let isProfiling = false

/** V8's profile as a pprof `Profile` message: two values per stack, samples and nanoseconds. */
export function encodeProfile(profile: Profiler.Profile): Uint8Array {
  const strings = new StringTable()
  const valueType = (type: string, unit: string): ValueType =>
    new ValueType({ type: strings.dedup(type), unit: strings.dedup(unit) })
  return new Profile({
    sampleType: [valueType('samples', 'count'), valueType('cpu', 'nanoseconds')],
    sample: samplesOf(profile),
    location: profile.nodes.map(
      ({ id, callFrame }) => new Location({ id, line: [new Line({ functionId: id, line: callFrame.lineNumber + 1 })] }),
    ),
    function: profile.nodes.map(({ id, callFrame }) => {
      const name = strings.dedup(callFrame.functionName || '(anonymous)')
      return new ProfiledFunction({ id, name, systemName: name, filename: strings.dedup(callFrame.url) })
    }),
    stringTable: strings,
    durationNanos: Math.max(0, profile.endTime - profile.startTime) * 1000,
    periodType: valueType('cpu', 'nanoseconds'),
    period: 1_000_000,
  }).encode()
}

function samplesOf({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Sample[] {
  const parents = new Map<number, number>()
  for (const node of nodes) for (const child of node.children ?? []) parents.set(child, node.id)
  const totals = new Map<number, { count: number; nanos: number }>()
  for (const [at, node] of samples.entries()) {
    const total = totals.get(node) ?? { count: 0, nanos: 0 }
    totals.set(node, { count: total.count + 1, nanos: total.nanos + (timeDeltas[at] ?? 0) * 1000 })
  }
  return Array.from(totals, ([leaf, { count, nanos }]) => {
    const locationId: number[] = []
    for (let node: number | undefined = leaf; node !== undefined; node = parents.get(node)) locationId.push(node)
    return new Sample({ locationId, value: [count, Math.max(0, nanos)] })
  })
}
