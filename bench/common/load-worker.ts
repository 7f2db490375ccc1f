import { type Dispatcher, Pool } from 'undici'
import type { LoadAddress, LoadJob, LoadMessage, LoadReply, LoadResult } from './load-jobs.js'

interface Answer {
  status: number
  body: Buffer
}

/** The thinnest client undici allows: its own cost must not hide the server's on a machine they share. */
class Requests {
  readonly #pool: Pool
  readonly #headers: Record<string, string>

  constructor(address: LoadAddress) {
    this.#pool = new Pool(address.url, {
      connections: address.connections,
      pipelining: 1,
      headersTimeout: 30_000,
      bodyTimeout: 0,
      connect: { ca: address.ca },
    })
    this.#headers = { authorization: `Bearer ${address.token}`, 'content-type': 'application/json' }
  }

  send(method: 'GET' | 'POST', path: string, body?: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      let status = 0
      const chunks: Buffer[] = []
      this.#pool.dispatch(
        { method, path, headers: this.#headers, ...(body === undefined ? {} : { body }) },
        {
          onRequestStart() {},
          onResponseStart(_controller, statusCode) {
            status = statusCode
          },
          onResponseData(_controller, chunk) {
            chunks.push(chunk)
          },
          onResponseEnd() {
            resolve({ status, body: chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks) })
          },
          onResponseError(_controller, error) {
            reject(error)
          },
        },
      )
    })
  }

  stream(path: string, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    return this.#pool.request({ method: 'GET', path, headers: this.#headers, signal })
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }
}

const filler = 'x'.repeat(640)

/** With the metadata a server adds, about 1 KB. */
function configMap(name: string): string {
  return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}","labels":{"app":"bench"}},"data":{"value":"${filler}"}}`
}

const collection = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`
const versionOf = (body: Buffer): string => /"resourceVersion":\s*"(\d+)"/.exec(body.toString('latin1'))?.[1] ?? ''

process.on('message', ({ address, job }: LoadMessage) => {
  void perform(address, job).then(
    (result) => reply({ result }),
    (error: unknown) => reply({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})

function reply(message: LoadReply): void {
  process.send?.(message)
}

async function perform(address: LoadAddress, job: LoadJob): Promise<LoadResult> {
  const requests = new Requests(address)
  try {
    switch (job.kind) {
      case 'create':
        return await create(requests, address.connections, job)
      case 'get':
        return await get(requests, address.connections, job)
      case 'watch':
        return await watch(requests, address.connections, job)
      case 'list':
        return await list(requests, job.namespace)
    }
  } finally {
    await requests.close()
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
  requests: Requests,
  connections: number,
  job: Extract<LoadJob, { kind: 'create' }>,
): Promise<LoadResult> {
  const acknowledged: [string, string][] = []
  const path = collection(job.namespace)
  const result = await closedLoop(connections, job, async (index) => {
    const name = `${job.prefix}-${index}`
    const { status, body } = await requests.send('POST', path, configMap(name))
    if (status !== 201) return `${status} ${body.toString().slice(0, 300)}`
    if (job.keepAcknowledged) acknowledged.push([name, versionOf(body)])
    return undefined
  })
  return job.keepAcknowledged ? { ...result, acknowledged } : result
}

function get(requests: Requests, connections: number, job: Extract<LoadJob, { kind: 'get' }>): Promise<LoadResult> {
  const paths = job.names.map((name) => `${collection(job.namespace)}/${name}`)
  return closedLoop(connections, job, async (index) => {
    const { status, body } = await requests.send('GET', paths[index % paths.length] ?? '')
    return status === 200 ? undefined : `${status} ${body.toString().slice(0, 300)}`
  })
}

async function list(requests: Requests, namespace: string): Promise<LoadResult> {
  const startedAt = performance.now()
  const { status, body } = await requests.send('GET', collection(namespace))
  if (status !== 200) throw new Error(`list: ${status} ${body.toString().slice(0, 300)}`)
  const elapsedMs = performance.now() - startedAt
  const { items } = JSON.parse(body.toString()) as {
    items: { metadata: { name: string; resourceVersion: string } }[]
  }
  const acknowledged = items.map(({ metadata }): [string, string] => [metadata.name, metadata.resourceVersion])
  return { count: items.length, elapsedMs, latenciesMs: [elapsedMs], failed: 0, acknowledged }
}

async function watch(
  requests: Requests,
  connections: number,
  job: Extract<LoadJob, { kind: 'watch' }>,
): Promise<LoadResult> {
  const sentAt = new Map<string, number>()
  const latenciesMs: number[] = []
  const stop = new AbortController()
  const from = await requests.send('GET', `${collection(job.namespace)}?limit=1`)
  const path = `${collection(job.namespace)}?watch=true&resourceVersion=${versionOf(from.body)}`
  const stream = await requests.stream(path, stop.signal)
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
    const { status, body } = await requests.send('POST', collection(job.namespace), configMap(name))
    return status === 201 ? undefined : `${status} ${body.toString().slice(0, 300)}`
  }
  // One connection is taken by the watch.
  const created = job.ratePerSecond
    ? await paced(job.durationMs, job.ratePerSecond, step)
    : await closedLoop(connections - 1, job, step)
  const deadline = performance.now() + 10_000
  while (sentAt.size > created.failed && performance.now() < deadline) await new Promise((go) => setTimeout(go, 5))
  stop.abort()
  await reading
  if (sentAt.size > created.failed) throw new Error(`${sentAt.size - created.failed} events never came`)
  return { ...created, latenciesMs }
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
