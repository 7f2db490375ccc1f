import { request as httpRequest } from 'node:http'
import { createTaskTokens } from '@corral/tasks'
import { monotonicMs } from './broker-clock.js'
import { part, progress, readBenchOptions } from './common/bench-options.js'
import { Recorder } from './common/result-file.js'
import { median, percentile } from './common/samples.js'
import { startWorker } from './common/worker.js'

const tokens = createTaskTokens('bench')
const streamsAtOnce = 100
const requestBody = JSON.stringify({ model: 'claude-x', stream: true, messages: ['x'.repeat(40_000)] })

interface Subject {
  readonly name: string
  readonly port: number
  close(): Promise<void>
}

/**
 * The broker against http-proxy in front of the same model: the time to the first byte of an answer, in turns, and a
 * hundred streams at once whose every event says when it was written. Model, broker and http-proxy have a process each;
 * this one reads. A reader that is also the writer would measure how long it waits for itself.
 */
async function main(): Promise<void> {
  const options = readBenchOptions()
  const recorder = new Recorder('broker', options)
  recorder.versions['http-proxy'] = '1.18.1'
  const model = await startProcess('model', './broker-model.ts', [])
  const subjects = [await startSubject('corral', model.port), await startSubject('http-proxy', model.port)]
  try {
    await part(options, 'first-byte', () => firstBytes(recorder, subjects, options.isFull ? 4_000 : 1_000))
    await part(options, 'streams', () =>
      manyStreams(recorder, subjects, options.isFull ? { events: 200, rounds: 6 } : { events: 50, rounds: 4 }),
    )
  } finally {
    for (const subject of subjects) await subject.close()
    await model.close()
  }
  recorder.finish()
}

async function firstBytes(recorder: Recorder, subjects: readonly Subject[], rounds: number): Promise<void> {
  const times = new Map(subjects.map(({ name }) => [name, [] as number[]]))
  for (let round = -100; round < rounds; round += 1) {
    // In turns and each first as often, so that neither has the quieter machine.
    const order = round % 2 === 0 ? subjects : [...subjects].reverse()
    for (const { name, port } of order) {
      const ms = (await stream(port, 1)).firstByteMs
      if (round >= 0) times.get(name)?.push(ms)
    }
    if (round % 500 === 0) progress(`first byte: ${Math.max(0, round)} of ${rounds}`)
  }
  const [ours = [], peer = []] = subjects.map(({ name }) => times.get(name) ?? [])
  const ratio = median(ours) / median(peer)
  recorder.samples('broker first byte', ours)
  recorder.samples('http-proxy first byte', peer)
  recorder.row({
    measure: 'time to first byte, p50',
    unit: 'ms',
    values: { corral: median(ours), 'http-proxy': median(peer) },
    ratio,
    required: '<= 1.2 × http-proxy',
    isMet: ratio <= 1.2,
  })
}

async function manyStreams(
  recorder: Recorder,
  subjects: readonly Subject[],
  { events, rounds }: { events: number; rounds: number },
): Promise<void> {
  const delays = new Map(subjects.map(({ name }) => [name, [] as number[]]))
  const losses: Record<string, number> = Object.fromEntries(subjects.map(({ name }) => [name, 0]))
  for (let round = -1; round < rounds; round += 1) {
    progress(`${streamsAtOnce} streams: round ${round + 1} of ${rounds}`)
    const order = round % 2 === 0 ? subjects : [...subjects].reverse()
    for (const { name, port } of order) {
      const all = await Promise.all(Array.from({ length: streamsAtOnce }, () => stream(port, events, 20)))
      losses[name] = (losses[name] ?? 0) + all.filter(({ missingBytes }) => missingBytes !== 0).length
      // The first round warms both.
      if (round >= 0) delays.get(name)?.push(...all.flatMap(({ delaysMs }) => delaysMs))
    }
  }
  const p99s: Record<string, number> = {}
  for (const [name, values] of delays) {
    p99s[name] = percentile(values, 0.99)
    recorder.samples(`${name} written to read`, values)
  }
  const [ours = ''] = subjects.map(({ name }) => name)
  recorder.row({
    measure: `${streamsAtOnce} streams at once, streams with a lost byte`,
    unit: '',
    values: losses,
    required: '0',
    isMet: losses[ours] === 0,
  })
  recorder.row({
    measure: `${streamsAtOnce} streams at once, written to read, p99`,
    unit: 'ms',
    values: p99s,
    required: '<= 20',
    isMet: (p99s[ours] ?? Number.POSITIVE_INFINITY) <= 20,
  })
}

interface Streamed {
  firstByteMs: number
  delaysMs: number[]
  missingBytes: number
}

function stream(port: number, events: number, everyMs = 0): Promise<Streamed> {
  return new Promise((resolve, reject) => {
    const startedAt = monotonicMs()
    const request = httpRequest({
      port,
      host: '127.0.0.1',
      method: 'POST',
      path: `/v1/messages?events=${events}&every=${everyMs}`,
      headers: { authorization: `Bearer ${tokens.issue('bench')}`, 'content-type': 'application/json' },
    })
    request.once('error', reject)
    request.once('response', (reply) => {
      let firstByteMs = 0
      let pending = ''
      let size = 0
      let expected = -1
      const delaysMs: number[] = []
      reply.setEncoding('latin1')
      reply.on('data', (text: string) => {
        const now = monotonicMs()
        firstByteMs ||= now - startedAt
        size += text.length
        pending += text
        const lines = pending.split('\n')
        pending = lines.pop() ?? ''
        for (const line of lines) {
          const { at, total } = line.startsWith('data:')
            ? (JSON.parse(line.slice(5)) as { at?: number; total?: number })
            : {}
          if (at !== undefined) delaysMs.push(now - at)
          if (total !== undefined) expected = total
        }
      })
      reply.once('end', () => resolve({ firstByteMs, delaysMs, missingBytes: expected - size }))
      reply.once('error', reject)
    })
    request.end(requestBody)
  })
}

async function startProcess(name: string, path: string, args: readonly string[]): Promise<Subject> {
  const worker = await startWorker<{ port: number }>(new URL(path, import.meta.url), args)
  return { name, port: worker.ready.port, close: () => worker.stop() }
}

const startSubject = (name: string, modelPort: number): Promise<Subject> =>
  startProcess(name, './broker-worker.ts', [name, String(modelPort)])

await main()
