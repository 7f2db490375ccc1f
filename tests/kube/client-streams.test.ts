import { createServer, connect as dial, type Server, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { type KubeClient, kubeClientFromConfig, listenPort, loadKubeConfig } from '@corral/kube'
import type { ByteStream } from '@corral/ports'
import { Exec, KubeConfig, PortForward, type V1Status } from '@kubernetes/client-node'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type StubCluster, startStubCluster } from './stub-cluster.js'

let cluster: StubCluster
let client: KubeClient
const pod = { name: 'p' }

beforeAll(async () => {
  cluster = await startStubCluster()
  client = kubeClientFromConfig(await loadKubeConfig({ path: cluster.kubeconfig }))
})
afterAll(async () => {
  await client.close()
  await cluster[Symbol.asyncDispose]()
})

async function collect(source: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

describe('exec', () => {
  it.each([
    { when: 'the command succeeds', script: 'echo out; echo err >&2', exit: { exitCode: 0 } },
    { when: 'the command fails', script: 'echo out; echo err >&2; exit 7', exit: { exitCode: 7 } },
    {
      when: 'a signal ends the command',
      script: 'echo out; echo err >&2; kill -9 $$',
      exit: { exitCode: 137, signal: 9 },
    },
  ])('keeps stdout and stderr apart and tells the exit when $when', async ({ script, exit }) => {
    const process = await client.exec(pod, { command: ['sh', '-c', script] })
    expect(await Promise.all([collect(process.stdout), collect(process.stderr)])).toEqual(['out\n', 'err\n'])
    expect(await process.exited).toEqual(exit)
  })

  it('half-closes stdin, so that the command sees the end of its input', async () => {
    const process = await client.exec(pod, { command: ['wc', '-c'], stdin: true })
    const input = Buffer.alloc(1_000_000, 'x')
    await process.writeStdin(input)
    process.endStdin()
    expect((await collect(process.stdout)).trim()).toBe('1000000')
    expect(await process.exited).toEqual({ exitCode: 0 })
  })

  it('carries resizes of a terminal', async () => {
    const process = await client.exec(pod, { command: ['cat'], stdin: true, tty: true })
    process.resize(120, 40)
    await expect.poll(() => cluster.resizes).toContain('120x40')
    process.endStdin()
    expect((await process.exited).exitCode).toBe(0)
  })

  it('tells why a command could not start', async () => {
    const process = await client.exec(pod, { command: ['unstartable'] })
    expect(await process.exited).toEqual({ exitCode: 255, message: 'no such program: unstartable' })
  })

  it.each([
    { how: 'an aborted signal', end: (abort: AbortController) => abort.abort() },
    { how: 'kill', end: (_: AbortController, kill: () => void) => kill() },
  ])('ends the command by $how', async ({ end }) => {
    const abort = new AbortController()
    const process = await client.exec(pod, { command: ['sleep', '600'], signal: abort.signal })
    await expect.poll(() => cluster.processes.at(-1)?.spawnargs).toEqual(['sleep', '600'])
    const child = cluster.processes.at(-1)
    end(abort, () => process.kill())
    expect(await process.exited).toMatchObject({ exitCode: 137 })
    await expect.poll(() => child?.signalCode).toBe('SIGKILL')
  })

  it('holds the command up while nobody reads its output, instead of keeping it in memory', async () => {
    const process = await client.exec(pod, { command: ['sh', '-c', 'yes | head -c 20000000'] })
    const child = cluster.processes.at(-1)
    const first = process.stdout[Symbol.asyncIterator]()
    await first.next()
    // Nothing between here and the command may hold twenty megabytes, so it cannot have ended.
    expect(child?.exitCode).toBeNull()
    let bytes = 0
    for (let next = await first.next(); !next.done; next = await first.next()) bytes += next.value.length
    expect(bytes).toBeGreaterThan(19_000_000)
    expect(await process.exited).toEqual({ exitCode: 0 })
  })

  it('reports a lost connection as such on output and exit', async () => {
    const process = await client.exec(pod, { command: ['sleep', '600'] })
    const reading = collect(process.stdout)
    cluster.dropConnections()
    await expect(reading).rejects.toMatchObject({ code: 'ConnectionLost' })
    expect((await process.exited).message).toContain('connection ended before the process did')
  })
})

describe('port-forward', () => {
  const servers: Server[] = []
  const sockets: Socket[] = []
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))
  })
  async function serve(onConnection: (socket: Socket) => void): Promise<number> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket.on('error', () => {}))
      onConnection(socket)
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    return typeof address === 'object' && address ? address.port : 0
  }

  it('half-closes in both directions', async () => {
    const port = await serve((socket) => {
      let received = 0
      socket.on('data', (chunk) => {
        received += chunk.length
      })
      socket.on('end', () => socket.end(`got ${received}`))
    })
    const stream = await client.portForward(pod, port)
    await stream.write(Buffer.alloc(500_000))
    stream.end()
    expect(await collect(stream)).toBe('got 500000')
  })

  it('tells when nothing listens on the port', async () => {
    const port = await serve(() => {})
    await new Promise((resolve) => servers.pop()?.close(resolve))
    const stream = await client.portForward(pod, port)
    await expect(collect(stream)).rejects.toMatchObject({ code: 'PortForwardFailed' })
  })

  it('drops the connection in the pod when the stream is destroyed', async () => {
    let remote: Socket | undefined
    const port = await serve((socket) => {
      remote = socket
      socket.resume()
    })
    const stream = await client.portForward(pod, port)
    await expect.poll(() => remote).toBeDefined()
    stream.destroy()
    await expect.poll(() => remote?.destroyed || remote?.readableEnded).toBe(true)
  })

  it('fails an open stream at once when the tunnel dies', async () => {
    const port = await serve((socket) => socket.resume())
    const stream: ByteStream = await client.portForward(pod, port)
    const reading = collect(stream)
    cluster.dropConnections()
    await expect(reading).rejects.toMatchObject({ code: 'ConnectionLost' })
  })

  it('offers a local port for many connections and frees it on close', async () => {
    const port = await serve((socket) => socket.pipe(socket))
    // The stub serves no watches; the listener only needs one that never says anything.
    const quiet = { ...client, get: client.get, watch: neverEnding }
    const listener = await listenPort(quiet, pod, port)
    const echoes = await Promise.all(
      ['a', 'b', 'c'].map(async (text) => {
        const socket = dial(listener.port, '127.0.0.1')
        socket.end(text)
        return collect(socket)
      }),
    )
    expect(echoes).toEqual(['a', 'b', 'c'])
    await listener.close()
    expect(await listener.ended).toBeUndefined()
    const refused = dial(listener.port, '127.0.0.1')
    await expect(collect(refused)).rejects.toThrow('ECONNREFUSED')
  })
})

const neverEnding: KubeClient['watch'] = (_, options) => ({
  async *[Symbol.asyncIterator]() {
    await new Promise<void>((resolve) => options?.signal?.addEventListener('abort', () => resolve()))
  },
})

describe('@kubernetes/client-node 1.4 as judge of the server', () => {
  const config = () => {
    const loaded = new KubeConfig()
    loaded.loadFromFile(cluster.kubeconfig)
    return loaded
  }

  it('gets output, errors and the exit code of exec', async () => {
    const [stdout, stderr, stdin] = [new PassThrough(), new PassThrough(), new PassThrough()]
    const status = new Promise<V1Status>((resolve, reject) => {
      const command = ['sh', '-c', 'cat; echo err >&2; exit 3']
      new Exec(config()).exec('default', 'p', 'main', command, stdout, stderr, stdin, false, resolve).catch(reject)
    })
    stdin.end('hello')
    const result = await status
    stdout.end()
    stderr.end()
    expect(result.details?.causes?.[0]?.message).toBe('3')
    expect(await collect(stdout)).toBe('hello')
    expect(await collect(stderr)).toBe('err\n')
  })

  it('forwards a port', async () => {
    const server = createServer((socket) => socket.end('greetings'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const [output, input] = [new PassThrough(), new PassThrough()]
    const webSocket = await new PortForward(config()).portForward('default', 'p', [port], output, null, input)
    const [chunk] = await new Promise<Buffer[]>((resolve) => output.once('data', (data) => resolve([data])))
    expect(String(chunk)).toBe('greetings')
    if (typeof webSocket !== 'function') webSocket.close()
    await new Promise((resolve) => server.close(resolve))
  })
})
