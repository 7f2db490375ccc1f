import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, connect as dial } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApiServer, memoryStorage, serveHttps } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient, kubeClientFromConfig, listenPort } from '@corral/kube'
import type { PodStreams } from '@corral/ports'
import { defineKind, type KubeObject } from '@corral/resources'
import { afterEach, describe, expect, it } from 'vitest'
import { dialLocal, spawnProcess } from './local-pod.js'

interface Pod extends KubeObject {
  spec?: object
  status?: object
}
const pods = defineKind<Pod>('v1', 'Pod', 'pods')
const ref = { name: 'p', namespace: 'default' }
const never = new AbortController().signal

const podStreams: PodStreams = {
  exec: async (_, options) => spawnProcess([...options.command], options, options.signal ?? never, []).process,
  attach: async (_, options) => spawnProcess(['cat'], options, options.signal ?? never, []).process,
  async *logs(_, options) {
    yield Buffer.from('first line\n')
    if (options.follow) yield Buffer.from('followed\n')
  },
  portForward: (_, port) => dialLocal(port),
}

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function startServer() {
  const server = await createApiServer({ storage: memoryStorage(), podStreams, schedulesPods: false })
  cleanups.push(() => server.close())
  return server
}

async function inProcess(): Promise<KubeClient> {
  return inProcessKubeClient(await startServer())
}

async function overTls(): Promise<KubeClient> {
  const dataDir = await mkdtemp(join(tmpdir(), 'corral-kube-'))
  cleanups.push(() => rm(dataDir, { recursive: true, force: true }))
  const { url, tls, token, close } = await serveHttps({ server: await startServer(), port: 0, dataDir })
  cleanups.push(close)
  const client = kubeClientFromConfig({
    server: new URL(url),
    namespace: 'default',
    tls: { ca: tls.ca.cert, rejectUnauthorized: true },
    credentials: async () => ({ authorization: `Bearer ${token}` }),
    origin: 'test',
  })
  cleanups.push(() => client.close())
  return client
}

async function runningPod(client: KubeClient): Promise<void> {
  const spec = { nodeName: 'n', containers: [{ name: 'main', image: 'x', command: ['sleep'] }] }
  const pod = await client.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata: ref, spec })
  const state = { running: { startedAt: '2026-01-01T00:00:00Z' } }
  const containerStatuses = [{ name: 'main', image: 'x', imageID: '', ready: true, restartCount: 0, state }]
  await client.updateStatus(pods, { ...pod, status: { phase: 'Running', containerStatuses } })
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

describe.each([
  { name: 'over TLS', start: overTls },
  { name: 'in one process', start: inProcess },
])('streams of a pod through the embedded server $name', ({ start }) => {
  it('exec carries input, output and the exit code', async () => {
    const client = await start()
    await runningPod(client)
    const process = await client.exec(ref, { command: ['sh', '-c', 'cat; echo err >&2; exit 4'], stdin: true })
    await process.writeStdin(Buffer.from('typed'))
    process.endStdin()
    expect(await Promise.all([collect(process.stdout), collect(process.stderr)])).toEqual(['typed', 'err\n'])
    expect(await process.exited).toMatchObject({ exitCode: 4 })
  })

  it('attach and logs reach the container', async () => {
    const client = await start()
    await runningPod(client)
    expect(await collect(client.logs(ref, { container: 'main' }))).toBe('first line\n')
    expect(await collect(client.logs(ref, { follow: true }))).toContain('followed')
    const attached = await client.attach(ref, { stdin: true })
    await attached.writeStdin(Buffer.from('hello'))
    attached.endStdin()
    expect(await collect(attached.stdout)).toBe('hello')
  })

  it('an aborted signal ends the command', async () => {
    const client = await start()
    await runningPod(client)
    const abort = new AbortController()
    const process = await client.exec(ref, { command: ['sleep', '600'], signal: abort.signal })
    abort.abort()
    expect((await process.exited).exitCode).toBe(137)
  })

  it.each([
    { when: 'the pod is missing', pod: { name: 'other', namespace: 'default' }, container: 'main', code: 'NotFound' },
    { when: 'the container is missing', pod: ref, container: 'other', code: 'BadRequest' },
  ])('exec is refused before anything starts when $when', async ({ pod, container, code }) => {
    const client = await start()
    await runningPod(client)
    await expect(client.exec(pod, { command: ['true'], container })).rejects.toMatchObject({ code })
  })

  it('a local port leads to the pod until the pod is gone, and says so at once', async () => {
    const client = await start()
    await runningPod(client)
    const echo = createServer((socket) => socket.on('error', () => {}).pipe(socket))
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => new Promise((resolve) => echo.close(resolve)))
    const address = echo.address()
    const listener = await listenPort(client, ref, typeof address === 'object' && address ? address.port : 0)

    const short = dial(listener.port, '127.0.0.1')
    short.end('through')
    expect(await collect(short)).toBe('through')

    const open = dial(listener.port, '127.0.0.1')
    open.on('error', () => {})
    open.write('still here')
    await new Promise((resolve) => open.once('data', resolve))
    await client.delete(pods, ref, { gracePeriodSeconds: 0 })
    expect(await listener.ended).toMatchObject({ code: 'NotFound' })
    await expect.poll(() => open.destroyed || open.readableEnded).toBe(true)
    open.destroy()
  })

  it('a local port is refused for a pod that is not there', async () => {
    const client = await start()
    await expect(listenPort(client, ref, 80)).rejects.toMatchObject({ code: 'NotFound' })
  })
})
