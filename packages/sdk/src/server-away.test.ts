import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcp } from 'node:net'
import { type KubeClient, kubeClientFromConfig } from '@corral/kube'
import { bootHeader, daemonPort, daemonRoutes, encodeOutputFrame } from '@corral/protocol'
import { KubeError, type KubeObject, type Sandbox } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import { reach } from './connection/reach.js'
import { toSandboxError } from './sandbox-error.js'
import type { SandboxHandle } from './sandbox-handle.js'
import { TestCluster } from './test-cluster.test-suite.js'

const podTemplate = { spec: { containers: [{ name: 'sandbox', image: 'debian' }] } }
const exit = encodeOutputFrame({
  type: 'exit',
  offset: 0,
  exit: { exit_code: 0, time: '2026-01-01T00:00:00.000Z' },
})

let cluster: TestCluster
let daemon: Server
let isAway: boolean
let starts: number
const opened: { detach(): void }[] = []

/** A port that refuses connections: a server had it and has ended. */
async function closedPort(): Promise<number> {
  const server = createTcp()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

beforeEach(async () => {
  cluster = new TestCluster()
  isAway = false
  starts = 0
  daemon = createServer((request, response) => {
    response.setHeader(bootHeader, 'life-1')
    if (request.url === daemonRoutes.health) response.end('ok')
    else if (request.method === 'PUT') {
      starts += 1
      response.end(exit)
    } else response.writeHead(404).end()
  })
  daemon.on('connect', (_, socket) => void socket.end('HTTP/1.1 405 Method Not Allowed\r\n\r\n'))
  await new Promise<void>((resolve) => daemon.listen(0, '127.0.0.1', resolve))
  cluster.ports.set(daemonPort, (daemon.address() as AddressInfo).port)
  const path = '/api/v1/namespaces/default/pods/one'
  cluster.put(path, { metadata: { name: 'one', namespace: 'default' }, status: { phase: 'Running' } } as KubeObject)
})

afterEach(async () => {
  for (const handle of opened.splice(0)) handle.detach()
  daemon.closeAllConnections()
  await new Promise((resolve) => daemon.close(resolve))
})

/** A sandbox of a server that goes away: then the same calls go to a port where nothing listens. */
async function sandboxBehind(
  connectTimeoutMs: number,
): Promise<{ sandbox: SandboxHandle; server: string; asked: Promise<void> }> {
  const server = `http://127.0.0.1:${await closedPort()}`
  const away = kubeClientFromConfig({
    server: new URL(server),
    namespace: 'default',
    tls: { rejectUnauthorized: true },
    credentials: async () => ({}),
    origin: 'test',
  })
  const here = cluster.client()
  let tellAsked = (): void => {}
  const asked = new Promise<void>((resolve) => {
    tellAsked = resolve
  })
  const now = (): KubeClient => (isAway ? away : here)
  const client: KubeClient = {
    ...here,
    find: (...call) => now().find(...call),
    get: (...call) => now().get(...call),
    portForward: (...call) =>
      now()
        .portForward(...call)
        .finally(() => isAway && tellAsked()),
  }
  const sdk = new AgentSandboxClient({ client, namespace: 'default', connectTimeoutMs })
  await sdk.sandboxes.objects.create({ metadata: { name: 'one' }, spec: { podTemplate } } as Sandbox)
  const sandbox = await sdk.sandboxes.get('one')
  opened.push(sandbox)
  return { sandbox, server, asked }
}

/** Every connection that stands breaks, too. */
function leave(): void {
  isAway = true
  daemon.closeAllConnections()
}

describe('while the API server is away', () => {
  it.each<{ what: string; isKnown: boolean; call: (sandbox: SandboxHandle) => PromiseLike<unknown> }>([
    { what: 'a first command', isKnown: false, call: (sandbox) => sandbox.exec(['true']) },
    { what: 'a command of a handle that was used', isKnown: true, call: (sandbox) => sandbox.exec(['true']) },
    { what: 'attaching', isKnown: true, call: (sandbox) => sandbox.processes.attach('p') },
    { what: 'a file', isKnown: true, call: (sandbox) => sandbox.files.read('/etc/hostname') },
    { what: 'a request to a port', isKnown: true, call: (sandbox) => sandbox.ports.fetch(daemonPort, '/') },
  ])('$what fails soon, names the server, and may be tried again', async ({ isKnown, call }) => {
    const { sandbox, server } = await sandboxBehind(0)
    if (isKnown) await sandbox.exec(['true'])
    leave()
    const begunMs = performance.now()
    await expect(call(sandbox)).rejects.toMatchObject({
      name: 'SandboxError',
      code: 'ConnectionLost',
      retryable: true,
      message: expect.stringContaining(`the server ${server} cannot be reached`),
      hint: expect.stringContaining('Check that the server runs'),
      details: { server },
    })
    // Without a limit a command is tried for a minute.
    expect(performance.now() - begunMs).toBeLessThan(50_000)
    expect(starts).toBe(isKnown ? 1 : 0)
  })

  it('a first command is not taken for one of a sandbox without a daemon', async () => {
    const { sandbox } = await sandboxBehind(0)
    leave()
    await expect(sandbox.exec(['true'])).rejects.toMatchObject({ code: 'ConnectionLost' })
    isAway = false
    expect(await sandbox.exec(['true'])).toMatchObject({ exitCode: 0 })
    expect(await sandbox.runtime()).toBe('corral')
  })

  it('a command waits for a server that comes back in time, and runs once', async () => {
    const { sandbox, asked } = await sandboxBehind(120_000)
    await sandbox.exec(['true'])
    leave()
    const running = sandbox.exec(['true'])
    await asked
    isAway = false
    expect(await running).toMatchObject({ exitCode: 0 })
    expect(starts).toBe(2)
  })

  it.each([-1, Number.NaN, '5' as unknown as number])('a limit of %s is Invalid', (connectTimeoutMs) => {
    expect(() => new AgentSandboxClient({ connectTimeoutMs })).toThrow(expect.objectContaining({ code: 'Invalid' }))
  })
})

it.each<{ what: string; error: Error }>([
  {
    what: 'that the API client has refused',
    error: new KubeError('CertificateInvalid', 'get /version: self-signed certificate'),
  },
  {
    what: 'of an address',
    error: Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' }),
  },
])('a certificate $what is no error of the SDK, and no reason to try again', async ({ error }) => {
  expect(toSandboxError(error)).toMatchObject({ code: 'CertificateInvalid', retryable: false })
  const dials: number[] = []
  const dial = async (): Promise<never> => {
    dials.push(1)
    throw error
  }
  const reached = reach(dial, { connectMs: 600_000, server: 'https://sandboxes.example.com' })
  await expect(reached).rejects.toMatchObject({
    code: 'CertificateInvalid',
    message: expect.stringContaining('https://sandboxes.example.com cannot be reached'),
    details: { server: 'https://sandboxes.example.com' },
  })
  expect(dials).toHaveLength(1)
})
