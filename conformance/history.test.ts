import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { randomFrom } from './fuzz/requests.js'
import type { KubeBody } from './harness/kube-body.js'
import { type ServerProcess, startServerProcess } from './harness/server-process.js'
import { type RawEvent, WatchStream } from './harness/watch-stream.js'

const isFull = process.env.CORRAL_TEST_SIZE === 'full'
const size = isFull ? { lives: 20, steps: 150 } : { lives: 4, steps: 40 }
const seed = Number(process.env.CORRAL_TEST_SEED ?? Date.now() % 1_000_000)
const path = '/api/v1/namespaces/default/secrets'

/** What happened, as a client that was told of every outcome remembers it. */
interface Fact {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly name: string
  readonly version: number
}

describe('random writes, watches, restarts and kill -9 against a model', () => {
  let server: ServerProcess
  beforeAll(async () => {
    server = await startServerProcess('sqlite')
  })
  afterAll(() => server?.close())

  it(`the server and the model agree after ${size.lives} lives (seed ${seed})`, async () => {
    const random = randomFrom(seed)
    const history: Fact[] = []
    const model = new Map<string, { label: string; version: number }>()
    const head = (): number => history.at(-1)?.version ?? 0
    for (let life = 0; life < size.lives; life += 1) {
      const bornAt = head()
      const watches: { from: number; stream: WatchStream }[] = []
      for (let step = 0; step < size.steps; step += 1) {
        if (random() < 0.08) watches.push(await openWatch(server, pickStart(history, random)))
        await write(server, model, history, random)
      }
      expect(await contents(server)).toEqual(expected(model))
      for (const { from, stream } of watches) await agrees(stream, from, history, { mayExpire: from < bornAt })
      const late = { body: { metadata: { name: `late-${life}` } } }
      const inFlight = killsInFlight(random) ? server.http.call('POST', path, late) : undefined
      const answered = inFlight?.then(
        ({ status }) => status,
        () => undefined, // the server died first: what became of the write is read back below
      )
      await (random() < 0.7 ? server.kill() : server.stop())
      const outcome = await answered
      await server.start()
      await settle(server, model, history, `late-${life}`, outcome)
      expect(await contents(server)).toEqual(expected(model))
      // A version from before the crash is either replayed in full or refused, never silently cut short.
      const { from, stream } = await openWatch(server, pickStart(history, random))
      await agrees(stream, from, history, { mayExpire: true })
      const versions = history.map(({ version }) => version)
      expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b))
      expect(head()).toBeGreaterThan(0)
    }
    process.stdout.write(`history: ${history.length} writes over ${size.lives} lives, seed ${seed}\n`)
  })
})

const killsInFlight = (random: () => number): boolean => random() < 0.5

async function write(
  server: ServerProcess,
  model: Map<string, { label: string; version: number }>,
  history: Fact[],
  random: () => number,
): Promise<void> {
  const name = `key-${Math.floor(random() * 12)}`
  const label = `v${Math.floor(random() * 1e6)}`
  const body = { metadata: { name, labels: { label } } }
  const known = model.get(name)
  if (!known) {
    const version = versionOf((await server.http.call('POST', path, { body })).is(201))
    model.set(name, { label, version })
    history.push({ type: 'ADDED', name, version })
  } else if (random() < 0.35) {
    const answer = await server.http.call('DELETE', `${path}/${name}`)
    answer.is(200)
    model.delete(name)
    // The answer of a deletion has no version: the next list tells the head, which is this deletion's.
    history.push({ type: 'DELETED', name, version: versionOf((await server.http.call('GET', path)).is(200)) })
  } else if (random() < 0.3) {
    const stale = { metadata: { ...body.metadata, resourceVersion: String(known.version - 1) } }
    ;(await server.http.call('PUT', `${path}/${name}`, { body: stale })).is(409)
  } else {
    const version = versionOf((await server.http.call('PUT', `${path}/${name}`, { body })).is(200))
    model.set(name, { label, version })
    history.push({ type: 'MODIFIED', name, version })
  }
}

/** A write that was under way when the server died may have happened or not; what was acknowledged must have. */
async function settle(
  server: ServerProcess,
  model: Map<string, { label: string; version: number }>,
  history: Fact[],
  name: string,
  status: number | undefined,
): Promise<void> {
  const answer = await server.http.call('GET', `${path}/${name}`)
  if (status === 201) expect(answer.status).toBe(200)
  if (answer.status !== 200) return
  const version = versionOf(answer.body)
  model.set(name, { label: '', version })
  history.push({ type: 'ADDED', name, version })
}

const versionOf = (body: KubeBody): number => Number(body.metadata.resourceVersion)

function pickStart(history: readonly Fact[], random: () => number): number {
  return history[Math.floor(random() * history.length)]?.version ?? 0
}

async function openWatch(server: ServerProcess, from: number): Promise<{ from: number; stream: WatchStream }> {
  const response = await server.http.open('GET', `${path}?watch=1&resourceVersion=${from}`)
  return { from, stream: new WatchStream(response, `watch from ${from}`) }
}

/** The watch tells exactly what the model knows to have happened after its start. From 0 it begins with what was there. */
async function agrees(
  stream: WatchStream,
  from: number,
  history: readonly Fact[],
  options: { mayExpire?: boolean } = {},
): Promise<void> {
  const wanted = history.filter(({ version }) => version > from)
  const told: RawEvent[] = []
  try {
    if (from === 0) return
    while (told.length < wanted.length) {
      const event = await stream.next()
      if (event?.type === 'ERROR' && options.mayExpire) return void expect(event.object.code).toBe(410)
      if (!event) throw new Error(`the watch from ${from} ended after ${told.length} of ${wanted.length} events`)
      told.push(event)
    }
    const facts = told.map(({ type, object }) => ({ type, name: object.metadata.name, version: versionOf(object) }))
    expect(facts).toEqual(wanted)
  } finally {
    stream.close()
  }
}

async function contents(server: ServerProcess): Promise<Record<string, unknown>> {
  const list = (await server.http.call('GET', path)).is(200)
  return Object.fromEntries(
    list.items.map(({ metadata }) => [
      metadata.name,
      [metadata.labels?.label ?? '', versionOf({ metadata } as KubeBody)],
    ]),
  )
}

const expected = (model: ReadonlyMap<string, { label: string; version: number }>): Record<string, unknown> =>
  Object.fromEntries([...model].map(([name, { label, version }]) => [name, [label, version]]))
