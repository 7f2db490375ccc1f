import { type Profiler, Session } from 'node:inspector/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'

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
export function encodeProfile(profile: Profiler.Profile): Buffer {
  const strings = new Map<string, number>([['', 0]])
  const text = (value: string): number => {
    const known = strings.get(value)
    if (known !== undefined) return known
    strings.set(value, strings.size)
    return strings.size - 1
  }
  const parents = new Map<number, number>()
  for (const node of profile.nodes) for (const child of node.children ?? []) parents.set(child, node.id)
  const totals = new Map<number, { count: number; nanos: number }>()
  for (const [at, node] of (profile.samples ?? []).entries()) {
    const total = totals.get(node) ?? { count: 0, nanos: 0 }
    totals.set(node, { count: total.count + 1, nanos: total.nanos + (profile.timeDeltas?.[at] ?? 0) * 1000 })
  }

  const parts: Buffer[] = []
  for (const [type, unit] of [
    ['samples', 'count'],
    ['cpu', 'nanoseconds'],
  ] as const) {
    parts.push(message(1, integer(1, text(type)), integer(2, text(unit))))
  }
  for (const [leaf, { count, nanos }] of totals) {
    const stack: number[] = []
    for (let node: number | undefined = leaf; node !== undefined; node = parents.get(node)) stack.push(node)
    parts.push(message(2, packed(1, stack), packed(2, [count, Math.max(0, nanos)])))
  }
  for (const { id, callFrame } of profile.nodes) {
    const line = message(4, integer(1, id), integer(2, callFrame.lineNumber + 1))
    parts.push(message(4, integer(1, id), line))
    const name = text(callFrame.functionName || '(anonymous)')
    parts.push(message(5, integer(1, id), integer(2, name), integer(3, name), integer(4, text(callFrame.url))))
  }
  const period = message(11, integer(1, text('cpu')), integer(2, text('nanoseconds')))
  for (const value of strings.keys()) parts.push(bytes(6, Buffer.from(value)))
  parts.push(integer(10, Math.max(0, profile.endTime - profile.startTime) * 1000), period, integer(12, 1_000_000))
  return Buffer.concat(parts)
}

function varint(value: number): Buffer {
  const out: number[] = []
  let rest = BigInt(Math.round(value))
  for (; rest > 0x7fn; rest >>= 7n) out.push(Number(rest & 0x7fn) | 0x80)
  out.push(Number(rest))
  return Buffer.from(out)
}

const integer = (field: number, value: number): Buffer => Buffer.concat([varint(field << 3), varint(value)])
const bytes = (field: number, content: Buffer): Buffer =>
  Buffer.concat([varint((field << 3) | 2), varint(content.length), content])
const message = (field: number, ...parts: Buffer[]): Buffer => bytes(field, Buffer.concat(parts))
const packed = (field: number, values: readonly number[]): Buffer => bytes(field, Buffer.concat(values.map(varint)))
