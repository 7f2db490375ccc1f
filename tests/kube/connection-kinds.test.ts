import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, request as httpRequest, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentSandboxClient, type ConnectionOptions } from '@corral/agent-sandbox-sdk'
import { createDaemon, type Daemon, type DaemonServer, serveDaemon } from '@corral/daemon'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { silentLogger, systemClock } from '@corral/ports'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

/** An address of this machine's own that no other test has: pods are reached at port 8888 of theirs. */
const podIp = `127.${1 + (process.pid % 254)}.${1 + (Date.now() % 254)}.77`
let directory: string
let daemon: Daemon
let server: DaemonServer
let router: Server
const passed: string[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-kinds-'))
  daemon = await createDaemon({
    workDir: join(directory, 'work'),
    stateDir: join(directory, 'state'),
    clock: systemClock,
    log: silentLogger,
    env: process.env,
    defaultCwd: directory,
    onRunnerFinished: () => {},
  })
  server = await serveDaemon(daemon, { port: 8888, host: podIp })
  // As routers do: the headers say whose request it is, and never reach the sandbox's own headers unchecked.
  router = createServer((request, response) => {
    const { authorization, 'x-sandbox-id': id, 'x-sandbox-port': port } = request.headers
    if (authorization !== 'Bearer secret' || id !== 'box') return void response.writeHead(401).end('{}')
    passed.push(`${request.method} ${request.url?.split('?')[0]}`)
    const { method, url: path, headers } = request
    const onward = httpRequest({ host: podIp, port: Number(port), method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  await new Promise<void>((resolve) => router.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  router.closeAllConnections()
  router.close()
  await daemon.terminate(0)
  await server.close(0)
  await daemon.close()
  await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
})

const routerPort = (): number => (router.address() as AddressInfo).port

/** A cluster of one sandbox, a router behind its Service, and a gateway. */
function cluster(): KubeClient {
  const object = (kind: string, name: string, namespace: string, more: object) => ({
    kind,
    metadata: { name, namespace, uid: name, resourceVersion: '1' },
    ...more,
  })
  const routerPod = object('Pod', 'router-1', 'agent-sandbox-system', { status: { phase: 'Running' } })
  const objects: Record<string, object> = {
    '/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/box': object('Sandbox', 'box', 'default', {
      spec: { podTemplate: { spec: { containers: [] } } },
      status: { podIPs: [podIp], serviceFQDN: podIp },
    }),
    '/api/v1/namespaces/default/pods/box': object('Pod', 'box', 'default', { status: { phase: 'Running' } }),
    '/api/v1/namespaces/agent-sandbox-system/services/sandbox-router-svc': object(
      'Service',
      'sandbox-router-svc',
      'agent-sandbox-system',
      { spec: { selector: { app: 'sandbox-router' } } },
    ),
    '/api/v1/namespaces/agent-sandbox-system/pods': { kind: 'PodList', metadata: {}, items: [routerPod] },
    '/apis/gateway.networking.k8s.io/v1/namespaces/edge/gateways/main': object('Gateway', 'main', 'edge', {
      status: { addresses: [{ value: 'gateway.example.org' }] },
    }),
  }
  const answer = (status: number, value: object) => ({
    status,
    headers: {},
    body: { type: 'object' as const, value, json: () => JSON.stringify(value) },
  })
  return inProcessKubeClient({
    handle: async ({ path }) =>
      objects[path]
        ? answer(200, objects[path])
        : answer(404, { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404, message: path }),
    connect: async ({ path }) => {
      const target = path.includes('/router-1/')
        ? { port: routerPort(), host: '127.0.0.1' }
        : { port: 8888, host: podIp }
      const socket = connect(target)
      socket.on('error', () => {})
      await new Promise((resolve, reject) => socket.once('connect', resolve).once('close', reject))
      return {
        type: 'port' as const,
        stream: {
          [Symbol.asyncIterator]: () => socket[Symbol.asyncIterator](),
          write: async (chunk: Uint8Array) => {
            if (!socket.write(chunk)) await new Promise((done) => socket.once('drain', done).once('close', done))
          },
          end: () => void socket.end(),
          destroy: () => void socket.destroy(),
        },
      }
    },
  })
}

const token = 'secret'
const kinds: { what: string; connection: () => ConnectionOptions; isRouted?: boolean }[] = [
  { what: 'found out by itself', connection: () => ({ type: 'auto' }) },
  { what: 'the API server’s port-forward', connection: () => ({ type: 'port-forward' }) },
  { what: 'the pod’s address', connection: () => ({ type: 'in-cluster-pod-ip' }) },
  { what: 'the name of its service', connection: () => ({ type: 'in-cluster-service' }) },
  { what: 'the router behind its Service', connection: () => ({ type: 'router', token }), isRouted: true },
  {
    what: 'a router at an address, whose token is asked for each time',
    connection: () => ({ type: 'router', url: `http://127.0.0.1:${routerPort()}`, token: async () => token }),
    isRouted: true,
  },
  {
    what: 'a gateway',
    connection: () => ({
      type: 'gateway',
      name: 'main',
      namespace: 'edge',
      token,
      fetch: (url, init) => fetch(url.replace('http://gateway.example.org', `http://127.0.0.1:${routerPort()}`), init),
    }),
    isRouted: true,
  },
  {
    what: 'a direct address',
    connection: () => ({ type: 'direct', url: `http://127.0.0.1:${routerPort()}`, token }),
    isRouted: true,
  },
]

describe('a sandbox that is reached by', () => {
  it.each(kinds)('$what takes commands, input and files', async ({ connection, isRouted = false }) => {
    passed.length = 0
    await using client = new AgentSandboxClient({ client: cluster(), namespace: 'default', connection: connection() })
    const sandbox = await client.sandboxes.get('box')
    try {
      expect(await sandbox.runtime()).toBe('corral')
      expect(await sandbox.exec(['sh', '-c', 'cat; echo err >&2; exit 3'], { stdin: 'in' })).toMatchObject({
        exitCode: 3,
        stdout: 'in',
        stderr: 'err\n',
      })
      const cat = sandbox.exec(['cat'], { stdin: true })
      await cat.write('later')
      await cat.end()
      expect((await cat).stdout).toBe('later')
      const path = join(directory, 'there', 'file')
      await sandbox.files.write(path, 'content')
      expect(await sandbox.files.readText(path)).toBe('content')
      expect((await sandbox.files.list(join(directory, 'there'))).map(({ path: name }) => name)).toEqual(['file'])
      expect(passed.length > 0).toBe(isRouted)
    } finally {
      sandbox.detach()
    }
  })

  it('a router that refuses its token says so', async () => {
    const connection = { type: 'direct', url: `http://127.0.0.1:${routerPort()}`, token: 'wrong' } as const
    await using client = new AgentSandboxClient({ client: cluster(), namespace: 'default', connection })
    const sandbox = await client.sandboxes.get('box')
    await expect(Promise.resolve(sandbox.exec(['true']))).rejects.toMatchObject({ code: 'Unauthorized' })
    sandbox.detach()
  })
})
