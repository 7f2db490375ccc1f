import { type Dispatcher, Pool } from 'undici'
import type { LoadAddress, LoadJob, LoadMessage, LoadReply, LoadResult } from './load-jobs.js'
import { type Answer, RawConnections } from './raw-connections.js'

const filler = 'x'.repeat(640)

/** With the metadata a server adds, about 1 KB. */
function configMap(name: string): string {
  return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}","labels":{"app":"bench"}},"data":{"value":"${filler}"}}`
}

const collection = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`
const versionOf = (body: string): string => /"resourceVersion":\s*"(\d+)"/.exec(body)?.[1] ?? ''

function failureOf({ status, body }: Answer, wanted: number): string | undefined {
  return status === wanted ? undefined : `${status} ${body.toString().slice(0, 300)}`
}

process.on('message', ({ address, job }: LoadMessage) => {
  void perform(address, job).then(
    (result) => reply({ result }),
    (error: unknown) => reply({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})

function reply(message: LoadReply): void {
  process.send?.(message)
}

function perform(address: LoadAddress, job: LoadJob): Promise<LoadResult> {
  switch (job.kind) {
    case 'create':
      return withConnections(address, address.connections, (requests) => create(requests, address.connections, job))
    case 'get':
      return withConnections(address, address.connections, (requests) => get(requests, address.connections, job))
    case 'watch': {
      // One connection is taken by the watch.
      const connections = address.connections - 1
      return withConnections(address, connections, (requests) => watch(address, requests, connections, job))
    }
    case 'list':
      return list(address, job.namespace)
  }
}

async function withConnections<T>(
  address: LoadAddress,
  count: number,
  use: (requests: RawConnections) => Promise<T>,
): Promise<T> {
  const requests = await RawConnections.open(address, count)
  try {
    return await use(requests)
  } finally {
    requests.close()
  }
}

/** For the few requests whose answers are long or never end. */
async function withReader<T>(
  address: LoadAddress,
  use: (read: (path: string, signal?: AbortSignal) => Promise<Dispatcher.ResponseData>) => Promise<T>,
): Promise<T> {
  const pool = new Pool(address.url, { bodyTimeout: 0, connect: { ca: address.ca } })
  const headers = { authorization: `Bearer ${address.token}` }
  try {
    return await use((path, signal) => pool.request({ method: 'GET', path, headers, ...(signal ? { signal } : {}) }))
  } finally {
    await pool.destroy()
  }
}

/** Runs `step` on every connection, again and again, until the time is over, the count reached or a request fails. */
async function closedLoop(
  connections: number,
  limits: { durationMs?: number | undefined; count?: number | undefined },
  step: (index: number) => Promise<string | undefined>,
): Promise<LoadResult> {
  const result: LoadResult = { count: 0, elapsedMs: 0, latenciesMs: [], failed: 0 }
  const startedAt = performance.now()
  const endsAt = startedAt + (limits.durationMs ?? Number.POSITIVE_INFINITY)
  let next = 0
  const lane = async (): Promise<void> => {
    while (performance.now() < endsAt && next < (limits.count ?? Number.POSITIVE_INFINITY)) {
      const sentAt = performance.now()
      const failure = await step(next++).catch((error: unknown) => String(error))
      if (failure !== undefined) {
        result.failed += 1
        result.firstFailure ??= failure
        return
      }
      result.latenciesMs.push(performance.now() - sentAt)
      result.count += 1
    }
  }
  await Promise.all(Array.from({ length: connections }, lane))
  result.elapsedMs = performance.now() - startedAt
  return result
}

async function create(
  requests: RawConnections,
  connections: number,
  job: Extract<LoadJob, { kind: 'create' }>,
): Promise<LoadResult> {
  const acknowledged: [string, string][] = []
  const path = collection(job.namespace)
  const result = await closedLoop(connections, job, async (index) => {
    const name = `${job.prefix}-${index}`
    const answer = await requests.send('POST', path, configMap(name))
    const failure = failureOf(answer, 201)
    if (!failure && job.keepAcknowledged) acknowledged.push([name, versionOf(answer.body.toString('latin1'))])
    return failure
  })
  return job.keepAcknowledged ? { ...result, acknowledged } : result
}

function get(
  requests: RawConnections,
  connections: number,
  job: Extract<LoadJob, { kind: 'get' }>,
): Promise<LoadResult> {
  const paths = job.names.map((name) => `${collection(job.namespace)}/${name}`)
  return closedLoop(connections, job, async (index) =>
    failureOf(await requests.send('GET', paths[index % paths.length] ?? ''), 200),
  )
}

async function list(address: LoadAddress, namespace: string): Promise<LoadResult> {
  const startedAt = performance.now()
  const { status, text } = await withReader(address, async (read) => {
    const { statusCode, body } = await read(collection(namespace))
    return { status: statusCode, text: await body.text() }
  })
  if (status !== 200) throw new Error(`list: ${status} ${text.slice(0, 300)}`)
  const elapsedMs = performance.now() - startedAt
  const { items } = JSON.parse(text) as { items: { metadata: { name: string; resourceVersion: string } }[] }
  const acknowledged = items.map(({ metadata }): [string, string] => [metadata.name, metadata.resourceVersion])
  return { count: items.length, elapsedMs, latenciesMs: [elapsedMs], failed: 0, acknowledged }
}

function watch(
  address: LoadAddress,
  requests: RawConnections,
  connections: number,
  job: Extract<LoadJob, { kind: 'watch' }>,
): Promise<LoadResult> {
  return withReader(address, async (read) => {
    const sentAt = new Map<string, number>()
    const latenciesMs: number[] = []
    const stop = new AbortController()
    const from = await (await read(`${collection(job.namespace)}?limit=1`)).body.text()
    const path = `${collection(job.namespace)}?watch=true&resourceVersion=${versionOf(from)}`
    const stream = await read(path, stop.signal)
    const marker = new RegExp(`"name":"(${job.prefix}-\\d+)"`, 'g')
    const reading = (async () => {
      let rest = ''
      for await (const chunk of stream.body) {
        const now = performance.now()
        const text = rest + Buffer.from(chunk).toString('latin1')
        const end = text.lastIndexOf('\n')
        rest = text.slice(end + 1)
        for (const [, name = ''] of text.slice(0, end + 1).matchAll(marker)) {
          const sent = sentAt.get(name)
          if (sent !== undefined) latenciesMs.push(now - sent)
          sentAt.delete(name)
        }
      }
    })().catch((error: unknown) => {
      if (!stop.signal.aborted) throw error
    })
    const step = async (index: number): Promise<string | undefined> => {
      const name = `${job.prefix}-${index}`
      sentAt.set(name, performance.now())
      return failureOf(await requests.send('POST', collection(job.namespace), configMap(name)), 201)
    }
    const created = job.ratePerSecond
      ? await paced(job.durationMs, job.ratePerSecond, step)
      : await closedLoop(connections, job, step)
    const deadline = performance.now() + 10_000
    while (sentAt.size > created.failed && performance.now() < deadline) await new Promise((go) => setTimeout(go, 5))
    stop.abort()
    await reading
    if (sentAt.size > created.failed) throw new Error(`${sentAt.size - created.failed} events never came`)
    return { ...created, latenciesMs }
  })
}

/** Starts one request per tick of a fixed schedule, however long earlier ones take. */
async function paced(
  durationMs: number,
  ratePerSecond: number,
  step: (index: number) => Promise<string | undefined>,
): Promise<LoadResult> {
  const result: LoadResult = { count: 0, elapsedMs: 0, latenciesMs: [], failed: 0 }
  const startedAt = performance.now()
  const pending: Promise<void>[] = []
  const total = Math.floor((durationMs / 1000) * ratePerSecond)
  while (pending.length < total) {
    const due = Math.min(total, Math.floor(((performance.now() - startedAt) / 1000) * ratePerSecond) + 1)
    while (pending.length < due) {
      const sentAt = performance.now()
      pending.push(
        step(pending.length)
          .catch((error: unknown) => String(error))
          .then((failure) => {
            if (failure === undefined) {
              result.count += 1
              result.latenciesMs.push(performance.now() - sentAt)
            } else {
              result.failed += 1
              result.firstFailure ??= failure
            }
          }),
      )
    }
    await new Promise((go) => setTimeout(go, 1))
  }
  await Promise.all(pending)
  result.elapsedMs = performance.now() - startedAt
  return result
}
