import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ApiServer, createApiServer, ensureCertificates, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { Nodes, Pods } from '@corral/resources'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type KubeletStreams, kubeletStreams } from './kubelet-streams.js'

interface FakeKubelet {
  readonly port: number
  readonly sockets: ReadonlySet<Socket>
  readonly server: Server
}

let directory: string
let server: ApiServer
let client: KubeClient
let streams: KubeletStreams
const kubelets: FakeKubelet[] = []

/** Answers every request with its own port and counts who is connected. */
async function startKubelet(tls: { cert: string; key: string }): Promise<FakeKubelet> {
  const sockets = new Set<Socket>()
  const listener = createServer(tls, (_request, response) => response.end(`from ${port}`))
  listener.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const { port } = listener.address() as AddressInfo
  const kubelet = { port, sockets, server: listener }
  kubelets.push(kubelet)
  return kubelet
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'corral-kubelets-'))
  server = await createApiServer({ storage: memoryStorage(), schedulesPods: false })
  client = inProcessKubeClient(server)
  const tls = await ensureCertificates(directory)
  for (let count = 0; count < 2; count++) await startKubelet(tls.server)
  streams = kubeletStreams({ client, ...tls.admin })
  await client.create(Nodes, { metadata: { name: 'far' } })
  await moveTo(kubelets[0]!.port)
  const containers = [{ name: 'c', image: 'example/c' }]
  await client.create(Pods, { metadata: { name: 'p', namespace: 'default' }, spec: { nodeName: 'far', containers } })
})
afterEach(async () => {
  await streams.close()
  for (const { server: listener, sockets } of kubelets.splice(0)) {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => listener.close(resolve))
  }
  await server.close()
  rmSync(directory, { recursive: true, force: true })
})

async function moveTo(Port: number): Promise<void> {
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port } },
  }
  await client.patch(Nodes, { name: 'far' }, { type: 'merge', body: { status } }, { subresource: 'status' })
}

async function log(): Promise<string> {
  let text = ''
  const pod = { namespace: 'default', name: 'p', uid: '' }
  const chunks = await streams.logs(pod, { container: 'c', follow: false, previous: false, timestamps: false })
  for await (const chunk of chunks) text += Buffer.from(chunk).toString()
  return text
}

it('connections to a node are kept, and closed when it has moved or is gone', async () => {
  const [first, second] = kubelets as [FakeKubelet, FakeKubelet]
  expect([await log(), await log()]).toEqual([`from ${first.port}`, `from ${first.port}`])
  expect(first.sockets.size).toBeGreaterThan(0)

  await moveTo(second.port)
  await expect.poll(() => first.sockets.size).toBe(0)
  expect(await log()).toBe(`from ${second.port}`)

  await client.delete(Nodes, { name: 'far' })
  await expect.poll(() => second.sockets.size).toBe(0)
})
