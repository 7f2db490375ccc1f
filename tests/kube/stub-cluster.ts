import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { finished } from 'node:stream/promises'
import { handleUpgrade, type ProcessStreams, type StreamLimits } from '@corral/streams'
import { selfSigned } from '../../packages/kube/src/self-signed.test-suite.js'
import { dialLocal, spawnProcess } from './local-pod.js'

/** A TLS server with one running pod: just enough for kubectl and clients to reach its streams. */
export interface StubCluster extends AsyncDisposable {
  readonly kubeconfig: string
  readonly port: number
  readonly ca: string
  /** Protocols that were asked for, in order. */
  readonly upgrades: string[]
  readonly resizes: string[]
  readonly processes: ChildProcess[]
  /** Ends every open connection, as a crash does. */
  dropConnections(): void
}

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'default', uid: 'u1', resourceVersion: '1' },
  spec: { containers: [{ name: 'main', image: 'x' }] },
  status: { phase: 'Running', containerStatuses: [{ name: 'main', ready: true, state: { running: {} } }] },
}

export async function startStubCluster(limits: StreamLimits = {}): Promise<StubCluster> {
  const { cert, key } = selfSigned()
  const server = createServer({ cert, key, maxHeaderSize: 1024 * 1024 }, (request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    const body = answers[path]
    response.writeHead(body ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body ?? notFound))
  })
  const sockets = new Set<Duplex>()
  server.on('connection', (socket: Duplex) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const upgrades: string[] = []
  const resizes: string[] = []
  const processes: ChildProcess[] = []
  const streaming = new Set<Promise<void>>()
  server.on('upgrade', (request, socket, head) => {
    const url = new URL(request.url ?? '/', 'https://host')
    const kind = url.pathname.split('/').at(-1)
    upgrades.push(request.headers['sec-websocket-protocol'] ?? `${request.headers.upgrade}`)
    const base = { request, socket, head, limits }
    const start = async (streams: ProcessStreams, signal: AbortSignal) => {
      const child = spawnProcess(url.searchParams.getAll('command'), streams, signal, resizes)
      processes.push(child.child)
      return child.process
    }
    const done =
      kind === 'portforward'
        ? handleUpgrade({ ...base, kind, dial: dialLocal })
        : handleUpgrade({ ...base, kind: 'exec', start })
    streaming.add(done)
    void done.then(() => streaming.delete(done))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const directory = await mkdtemp(join(tmpdir(), 'corral-kube-'))
  const kubeconfig = join(directory, 'config')
  await writeFile(kubeconfig, kubeconfigText(port, cert), { mode: 0o600 })

  const dropConnections = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    kubeconfig,
    port,
    ca: cert,
    upgrades,
    resizes,
    processes,
    dropConnections,
    async [Symbol.asyncDispose]() {
      dropConnections()
      await Promise.all(streaming)
      for (const child of processes) if (child.exitCode === null) child.kill('SIGKILL')
      await closeServer(server)
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const closeServer = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()))

const notFound = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', message: 'nope', code: 404 }
const podResource = {
  name: 'pods',
  singularName: 'pod',
  namespaced: true,
  kind: 'Pod',
  verbs: ['get', 'list', 'create'],
  shortNames: ['po'],
}
const answers: Readonly<Record<string, object>> = {
  '/version': { major: '1', minor: '34', gitVersion: 'v1.34.4' },
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
  '/api/v1': { kind: 'APIResourceList', groupVersion: 'v1', resources: [podResource] },
  '/api/v1/namespaces/default/pods/p': pod,
}

function kubeconfigText(port: number, ca: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'stub',
        cluster: {
          server: `https://127.0.0.1:${port}`,
          'certificate-authority-data': Buffer.from(ca).toString('base64'),
        },
      },
    ],
    users: [{ name: 'stub', user: { token: 'secret' } }],
    contexts: [{ name: 'stub', context: { cluster: 'stub', user: 'stub' } }],
    'current-context': 'stub',
  })
}

/** Runs a program to its end, with input, and collects what it says. */
export async function run(
  file: string,
  args: readonly string[],
  options: { input?: Uint8Array | string; env?: NodeJS.ProcessEnv; timeoutMs?: number } = {},
): Promise<{ code: number | null; stdout: Buffer; stderr: string }> {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'], env: options.env ?? process.env })
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 240_000)
  const [out, err]: [Buffer[], Buffer[]] = [[], []]
  child.stdout.on('data', (chunk) => out.push(chunk))
  child.stderr.on('data', (chunk) => err.push(chunk))
  child.stdin.on('error', () => {})
  child.stdin.end(options.input)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  clearTimeout(timer)
  await finished(child.stdout).catch(() => {})
  return { code, stdout: Buffer.concat(out), stderr: Buffer.concat(err).toString('utf8') }
}
