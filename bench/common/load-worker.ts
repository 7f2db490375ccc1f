import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
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
      return withConnections(address, address.connections, (requests) => getAll(requests, address.connections, job))
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
async function read(address: LoadAddress, path: string): Promise<IncomingMessage> {
  const request = get(new URL(path, address.url), {
    ca: address.ca,
    agent: false,
    headers: { authorization: `Bearer ${address.token}` },
  })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response.setEncoding('latin1')
}

async function readAll(address: LoadAddress, path: string): Promise<{ status: number | undefined; text: string }> {
  const response = await read(address, path)
  let text = ''
  for await (const chunk of response) text += chunk
  return { status: response.statusCode, text }
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

function getAll(
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
  const { status, text } = await readAll(address, collection(namespace))
  if (status !== 200) throw new Error(`list: ${status} ${text.slice(0, 300)}`)
  const elapsedMs = performance.now() - startedAt
  const { items } = JSON.parse(text) as { items: { metadata: { name: string; resourceVersion: string } }[] }
  const acknowledged = items.map(({ metadata }): [string, string] => [metadata.name, metadata.resourceVersion])
  return { count: items.length, elapsedMs, latenciesMs: [elapsedMs], failed: 0, acknowledged }
}

async function watch(
  address: LoadAddress,
  requests: RawConnections,
  connections: number,
  job: Extract<LoadJob, { kind: 'watch' }>,
): Promise<LoadResult> {
  const sentAt = new Map<string, number>()
  const latenciesMs: number[] = []
  const { text } = await readAll(address, `${collection(job.namespace)}?limit=1`)
  const path = `${collection(job.namespace)}?watch=true&resourceVersion=${versionOf(text)}`
  const stream = await read(address, path)
  const marker = `"name":"${job.prefix}-`
  let rest = ''
  stream.on('data', (chunk: string) => {
    const now = performance.now()
    const lines = rest + chunk
    const end = lines.lastIndexOf('\n') + 1
    for (let at = lines.indexOf(marker); at >= 0 && at < end; at = lines.indexOf(marker, at + marker.length)) {
      const name = lines.slice(at + '"name":"'.length, lines.indexOf('"', at + marker.length))
      const sent = sentAt.get(name)
      if (sent !== undefined) latenciesMs.push(now - sent)
      sentAt.delete(name)
    }
    rest = lines.slice(end)
  })
  const step = async (index: number): Promise<string | undefined> => {
    const name = `${job.prefix}-${index}`
    sentAt.set(name, performance.now())
    return failureOf(await requests.send('POST', collection(job.namespace), configMap(name)), 201)
  }
  try {
    const created = job.ratePerSecond
      ? await paced(job.durationMs, job.ratePerSecond, step)
      : await closedLoop(connections, job, step)
    const deadline = performance.now() + 10_000
    while (sentAt.size > created.failed && performance.now() < deadline) await new Promise((go) => setTimeout(go, 5))
    if (sentAt.size > created.failed) throw new Error(`${sentAt.size - created.failed} events never came`)
    return { ...created, latenciesMs }
  } finally {
    stream.destroy()
  }
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
