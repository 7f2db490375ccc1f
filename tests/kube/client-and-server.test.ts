import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ApiServer, createApiServer, type HttpsEndpoint, serveHttps, sqliteStorage } from '@corral/apiserver'
import {
  createInformer,
  inProcessKubeClient,
  type KubeClient,
  kubeClientFromConfig,
  loadKubeConfig,
  runLeaderElection,
} from '@corral/kube'
import { defineKind, type KubeObject, type Stored } from '@corral/resources'
import { afterEach, describe, expect, it } from 'vitest'

interface ConfigMap extends KubeObject {
  data?: Record<string, string>
}
const configMaps = defineKind<ConfigMap>('v1', 'ConfigMap', 'configmaps')
const configMap = (name: string, value = '1'): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data: { value },
})
const ref = (name: string) => ({ name, namespace: 'default' })

interface Place {
  readonly client: KubeClient
  /** Stops the server and starts it again on the same data and port. Absent where that is not ours to do. */
  restart?(): Promise<void>
}

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function overTls(): Promise<Place> {
  const dataDir = await mkdtemp(join(tmpdir(), 'corral-kube-'))
  cleanups.push(() => rm(dataDir, { recursive: true, force: true }))
  let server: ApiServer
  let endpoint: HttpsEndpoint
  const start = async (port: number) => {
    server = await createApiServer({ storage: sqliteStorage({ directory: join(dataDir, 'api') }) })
    endpoint = await serveHttps({ server, port, dataDir })
  }
  const stop = async () => {
    await endpoint.close()
    await server.close()
  }
  await start(0)
  cleanups.push(() => stop())
  const { url, tls, token } = endpoint!
  const client = kubeClientFromConfig({
    server: new URL(url),
    namespace: 'default',
    tls: { ca: tls.ca.cert, rejectUnauthorized: true },
    credentials: async () => ({ authorization: `Bearer ${token}` }),
    origin: 'test',
  })
  cleanups.push(() => client.close())
  return {
    client,
    async restart() {
      const { port } = endpoint
      await stop()
      await start(port)
      // A read is repeated on a new connection; a write on one the server has just closed would fail, and rightly.
      await client.raw('/readyz')
    },
  }
}

async function inProcess(): Promise<Place> {
  const directory = await mkdtemp(join(tmpdir(), 'corral-kube-'))
  cleanups.push(() => rm(directory, { recursive: true, force: true }))
  const start = () => createApiServer({ storage: sqliteStorage({ directory }) })
  let server = await start()
  cleanups.push(() => server.close())
  const client = inProcessKubeClient({
    handle: (request) => server.handle(request),
    connect: (request) => server.connect(request),
  })
  return {
    client,
    async restart() {
      await server.close()
      server = await start()
    },
  }
}

/** The server of a kubeconfig, to hold the client against a real Kubernetes. It must have a spare default namespace. */
async function real(): Promise<Place> {
  const client = kubeClientFromConfig(await loadKubeConfig({ path: process.env.CORRAL_REAL_KUBECONFIG ?? '' }))
  cleanups.push(async () => {
    await client.deleteCollection(configMaps, {
      namespace: 'default',
      fieldSelector: 'metadata.name!=kube-root-ca.crt',
    })
    await client.delete(leases, ref('lead')).catch(() => {})
    await client.close()
  })
  return { client }
}
const leases = defineKind('coordination.k8s.io/v1', 'Lease', 'leases')

describe.each([
  { name: 'embedded server over TLS', start: overTls },
  { name: 'embedded server in one process', start: inProcess },
  ...(process.env.CORRAL_REAL_KUBECONFIG ? [{ name: 'real server', start: real }] : []),
])('client and $name', ({ start }) => {
  it('create, read, change and delete', async () => {
    const { client } = await start()
    const created = await client.create(configMaps, configMap('a'))
    expect(created).toMatchObject({ kind: 'ConfigMap', metadata: { name: 'a', uid: expect.any(String) } })
    await expect(client.create(configMaps, configMap('a'))).rejects.toMatchObject({
      code: 'AlreadyExists',
      status: 409,
    })

    const updated = await client.update(configMaps, { ...created, data: { value: '2' } })
    await expect(client.update(configMaps, { ...created, data: { value: '3' } })).rejects.toMatchObject({
      code: 'Conflict',
    })
    const patched = await client.patch(configMaps, ref('a'), { type: 'merge', body: { data: { more: 'x' } } })
    expect(patched.data).toEqual({ value: '2', more: 'x' })
    expect(Number(patched.metadata.resourceVersion)).toBeGreaterThan(Number(updated.metadata.resourceVersion))
    const applied = await client.apply(configMaps, configMap('a', '4'), { force: true })
    expect(applied.data).toEqual({ value: '4', more: 'x' })

    const dry = await client.create(configMaps, configMap('dry'), { dryRun: true })
    expect(dry.metadata.name).toBe('dry')
    expect(await client.find(configMaps, ref('dry'))).toBeUndefined()

    const wrongUid = { preconditions: { uid: 'another' } }
    await expect(client.delete(configMaps, ref('a'), wrongUid)).rejects.toMatchObject({ code: 'Conflict' })
    await client.delete(configMaps, ref('a'))
    await expect(client.get(configMaps, ref('a'))).rejects.toMatchObject({ code: 'NotFound', status: 404 })
  })

  it('lists page by page and by selector', async () => {
    const { client } = await start()
    for (let index = 0; index < 7; index++) {
      const object = configMap(`m-${index}`)
      object.metadata = { ...object.metadata, labels: { odd: String(index % 2 === 1) } }
      await client.create(configMaps, object)
    }
    const names = async (options: Parameters<KubeClient['items']>[1]) => {
      const found: string[] = []
      for await (const item of client.items(configMaps, options)) {
        expect(item.kind).toBe('ConfigMap')
        found.push(item.metadata.name)
      }
      return found
    }
    expect(await names({ namespace: 'default', labelSelector: 'odd', limit: 2 })).toHaveLength(7)
    expect(await names({ namespace: 'default', labelSelector: 'odd=true' })).toEqual(['m-1', 'm-3', 'm-5'])
    expect(await names({ namespace: 'default', fieldSelector: 'metadata.name=m-4' })).toEqual(['m-4'])
    await client.deleteCollection(configMaps, { namespace: 'default', labelSelector: 'odd=true' })
    expect(await names({ namespace: 'default', labelSelector: 'odd' })).toEqual(['m-0', 'm-2', 'm-4', 'm-6'])
  })

  it('an informer follows a selector and misses nothing over a restart of the server', async () => {
    const { client, restart } = await start()
    const informer = createInformer({
      client,
      kind: configMaps,
      namespace: 'default',
      fieldSelector: 'metadata.name!=x',
    })
    cleanups.push(() => informer.stop())
    const seen: string[] = []
    const note = (sign: string) => (object: Stored<ConfigMap>) => {
      if (object.metadata.name.startsWith('m-')) seen.push(`${sign}${object.metadata.name}`)
    }
    informer.subscribe({ add: note('+'), update: note('~'), delete: note('-') })
    await informer.hasSynced
    await client.create(configMaps, configMap('m-1'))
    await client.create(configMaps, configMap('x'))
    await expect.poll(() => seen).toEqual(['+m-1'])
    await restart?.()
    await client.create(configMaps, configMap('m-2'))
    await client.patch(configMaps, ref('m-1'), { type: 'merge', body: { data: { value: '2' } } })
    await client.delete(configMaps, ref('m-2'))
    await expect.poll(() => seen).toEqual(['+m-1', '+m-2', '~m-1', '-m-2'])
    expect(informer.get('default/m-1')?.data).toEqual({ value: '2' })
  })

  it('a watch reports every one of many changes exactly once, in order', async () => {
    const { client } = await start()
    const first = await client.create(configMaps, configMap('m', '0'))
    const abort = new AbortController()
    const values: string[] = []
    const watching = (async () => {
      const { resourceVersion } = first.metadata
      const options = { namespace: 'default', fieldSelector: 'metadata.name=m', resourceVersion, signal: abort.signal }
      for await (const { type, object } of client.watch(configMaps, options)) {
        values.push(`${type} ${object.data?.value}`)
        if (values.length === 200) break
      }
    })()
    for (let index = 1; index <= 200; index++) {
      await client.patch(configMaps, ref('m'), { type: 'merge', body: { data: { value: String(index) } } })
    }
    await watching
    expect(values).toEqual(Array.from({ length: 200 }, (_, index) => `MODIFIED ${index + 1}`))
  })

  it('leaders follow one another on a Lease', async () => {
    const { client } = await start()
    const log: string[] = []
    const run = (identity: string, signal: AbortSignal) =>
      runLeaderElection({
        client,
        namespace: 'default',
        name: 'lead',
        identity,
        retryMs: 20,
        signal,
        async onStarted(leading) {
          log.push(identity)
          await new Promise<void>((resolve) => leading.addEventListener('abort', () => resolve(), { once: true }))
        },
      })
    const [stopA, stopB] = [new AbortController(), new AbortController()]
    const a = run('a', stopA.signal)
    await expect.poll(() => log).toEqual(['a'])
    const b = run('b', stopB.signal)
    stopA.abort()
    await a
    await expect.poll(() => log).toEqual(['a', 'b'])
    stopB.abort()
    await b
  })

  it('health and version answer without a kind', async () => {
    const { client } = await start()
    expect(await client.raw('/readyz')).toEqual({ status: 200, body: 'ok' })
    expect((await client.raw('/version')).body).toMatchObject({ gitVersion: expect.stringMatching(/^v1\./) })
  })
})
