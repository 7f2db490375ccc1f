import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { ConfigMaps } from '@corral/resources'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'
import { Pool } from 'undici'
import { type ApiTarget, startEmbedded } from './common/api-target.js'
import { part, progress, readBenchOptions } from './common/bench-options.js'
import { Recorder } from './common/result-file.js'
import { median, percentile } from './common/samples.js'
import { withScratch } from './common/scratch.js'

/** One way of asking an API server for the same things. */
interface Subject {
  readonly name: string
  get(name: string): Promise<unknown>
  create(name: string): Promise<unknown>
  close(): Promise<void>
}

interface Round {
  perSecond: number
  /** Processor time of the client's process for one request. */
  cpuMs: number
  latenciesMs: number[]
}

const namespace = 'default'
const data = { value: 'x'.repeat(640) }
const inFlight = 16

/**
 * Our client against @kubernetes/client-node and against bare undici with JSON, which is the limit: each in turn in
 * this process, on the same server in another one, over TLS with 16 requests in flight.
 */
async function main(): Promise<void> {
  const options = readBenchOptions()
  const recorder = new Recorder('kube-client', options)
  recorder.versions['@kubernetes/client-node'] = clientNodeVersion()
  await withScratch(async (directory) => {
    const server = await startEmbedded(join(directory, 'data'))
    const subjects = [await ours(server), await clientNode(server), bareUndici(server)]
    try {
      const rounds = options.isFull ? 10 : 4
      const roundMs = options.isFull ? 5_000 : 2_000
      await part(options, 'gets', () => compare(recorder, subjects, 'get', rounds, roundMs))
      await part(options, 'creates', () => compare(recorder, subjects, 'create', rounds, roundMs))
    } finally {
      for (const subject of subjects) await subject.close()
      await server.stop()
    }
  })
  recorder.finish()
}

async function compare(
  recorder: Recorder,
  subjects: readonly Subject[],
  verb: 'get' | 'create',
  rounds: number,
  roundMs: number,
): Promise<void> {
  for (let index = 0; verb === 'get' && index < 100; index += 1) await subjects[0]?.create(`given-${index}`)
  const found = new Map(subjects.map(({ name }) => [name, [] as Round[]]))
  for (const subject of subjects) await measure(subject, verb, 'warm', roundMs / 4)
  for (let round = 0; round < rounds; round += 1) {
    progress(`${verb}s, round ${round + 1} of ${rounds}`)
    for (const subject of subjects) found.get(subject.name)?.push(await measure(subject, verb, `r${round}`, roundMs))
  }
  for (const [name, all] of found) {
    recorder.samples(
      `${verb}s ${name} per s`,
      all.map(({ perSecond }) => perSecond),
    )
    recorder.samples(
      `${verb}s ${name} ms`,
      all.flatMap(({ latenciesMs }) => latenciesMs),
    )
  }
  const by = (read: (all: readonly Round[]) => number): Record<string, number> =>
    Object.fromEntries([...found].map(([name, all]) => [name, read(all)]))
  const rate = by((all) => median(all.map(({ perSecond }) => perSecond)))
  const ratio = (rate.corral ?? 0) / (rate['client-node'] ?? Number.NaN)
  recorder.row({
    measure: `${verb}s of 1 KB over TLS, 16 in flight`,
    unit: '1/s',
    values: rate,
    ratio,
    required: '10 × client-node (goal 20 ×)',
    isMet: ratio >= 10,
  })
  const cpu = by((all) => median(all.map(({ cpuMs }) => cpuMs)))
  recorder.row({
    measure: `processor time of the client per ${verb}`,
    unit: 'ms',
    values: cpu,
    ratio: (cpu.corral ?? 0) / (cpu['client-node'] ?? Number.NaN),
  })
  for (const share of [0.5, 0.99])
    recorder.row({
      measure: `${verb} answered, p${share * 100}`,
      unit: 'ms',
      values: by((all) =>
        percentile(
          all.flatMap(({ latenciesMs }) => latenciesMs),
          share,
        ),
      ),
    })
}

async function measure(subject: Subject, verb: 'get' | 'create', round: string, durationMs: number): Promise<Round> {
  const latenciesMs: number[] = []
  const prefix = `${subject.name}-${round}`
  const startedAt = performance.now()
  const cpuBefore = process.cpuUsage()
  let next = 0
  const lane = async (): Promise<void> => {
    while (performance.now() - startedAt < durationMs) {
      const sentAt = performance.now()
      const index = next++
      await (verb === 'get' ? subject.get(`given-${index % 100}`) : subject.create(`${prefix}-${index}`))
      latenciesMs.push(performance.now() - sentAt)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    perSecond: (latenciesMs.length / (performance.now() - startedAt)) * 1000,
    cpuMs: (user + system) / 1000 / latenciesMs.length,
    latenciesMs,
  }
}

async function ours(server: ApiTarget): Promise<Subject> {
  const access = await loadKubeConfig({ path: server.kubeconfig })
  const client: KubeClient = kubeClientFromConfig(access, { connections: inFlight })
  return {
    name: 'corral',
    get: (name) => client.get(ConfigMaps, { name, namespace }),
    create: (name) => client.create(ConfigMaps, { metadata: { name, namespace }, data }),
    close: () => client.close(),
  }
}

async function clientNode(server: ApiTarget): Promise<Subject> {
  const config = new KubeConfig()
  config.loadFromFile(server.kubeconfig)
  const api = config.makeApiClient(CoreV1Api)
  return {
    name: 'client-node',
    get: (name) => api.readNamespacedConfigMap({ name, namespace }),
    create: (name) => api.createNamespacedConfigMap({ namespace, body: { metadata: { name }, data } }),
    close: () => Promise.resolve(),
  }
}

/** What no client on undici can beat: a request, its body as text, JSON. */
function bareUndici(server: ApiTarget): Subject {
  const pool = new Pool(server.url, { connections: inFlight, connect: { ca: server.ca } })
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' }
  const path = `/api/v1/namespaces/${namespace}/configmaps`
  const send = async (method: 'GET' | 'POST', where: string, body?: object): Promise<unknown> => {
    const request = { method, path: where, headers, ...(body ? { body: JSON.stringify(body) } : {}) }
    const answer = await pool.request(request)
    if (answer.statusCode >= 300) throw new Error(`${method} ${where}: ${answer.statusCode}`)
    return answer.body.json()
  }
  return {
    name: 'bare undici',
    get: (name) => send('GET', `${path}/${name}`),
    create: (name) => send('POST', path, { metadata: { name: name.replace(' ', '-') }, data }),
    close: () => pool.destroy(),
  }
}

function clientNodeVersion(): string {
  const file = new URL('../node_modules/@kubernetes/client-node/package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

await main()
