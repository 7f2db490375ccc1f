import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer, get, request, type Server } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { openReversePort, type ReversePort } from '@corral/agent-sandbox-sdk'
import { createDaemon, type Daemon, type DaemonServer, serveDaemon } from '@corral/daemon'
import { type ByteStream, silentLogger, systemClock } from '@corral/ports'
import { DaemonClient } from '@corral/protocol'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let directory: string
let daemon: Daemon
let daemonServer: DaemonServer
let client: DaemonClient
let broker: Server
let inside: number
const lines = new Set<Socket>()
const opened: ReversePort[] = []

const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-reverse-'))
  daemon = await createDaemon({
    workDir: join(directory, 'work'),
    stateDir: join(directory, 'state'),
    clock: systemClock,
    log: silentLogger,
    env: process.env,
    defaultCwd: directory,
    onRunnerFinished: () => {},
  })
  daemonServer = await serveDaemon(daemon, { port: 0, host: '127.0.0.1' })
  client = new DaemonClient({ fetch, baseUrl: `http://127.0.0.1:${daemonServer.port}` })
  broker = createHttpServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => response.end(`${request.url} ${body.length}`))
  })
  await once(broker.listen(0, '127.0.0.1'), 'listening')
  // A free port of this machine stands for the sandbox's.
  const probe = createServer()
  await once(probe.listen(0, '127.0.0.1'), 'listening')
  inside = portOf(probe)
  probe.close()
})
afterEach(async () => {
  for (const reverse of opened.splice(0)) await reverse.close()
  await daemonServer.close(0)
  await daemon.close()
  broker.closeAllConnections()
  broker.close()
  await rm(directory, { recursive: true, force: true })
})

/** A connection to the daemon, which the test can cut. */
async function dial(): Promise<ByteStream> {
  const socket = connect(daemonServer.port!, '127.0.0.1')
  lines.add(socket)
  socket.on('error', () => {})
  socket.once('close', () => lines.delete(socket))
  await once(socket, 'connect')
  return {
    [Symbol.asyncIterator]: () => socket[Symbol.asyncIterator](),
    write: async (chunk) => {
      if (!socket.write(chunk)) await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
    },
    end: () => void socket.end(),
    destroy: () => void socket.destroy(),
  }
}

function open(target = portOf(broker)): ReversePort {
  const reverse = openReversePort(dial, inside, { target: { host: '127.0.0.1', port: target } })
  opened.push(reverse)
  return reverse
}

const ask = (path: string, body = ''): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: inside, path, method: 'POST', agent: false }
    request(options, (answer) => void text(answer).then(resolve, reject))
      .on('error', reject)
      .end(body)
  })

describe('a port of the sandbox that leads out', () => {
  it('carries requests from inside to a server outside, many at once', async () => {
    await open().ready
    await client.checkReversePort(inside)
    const body = 'x'.repeat(100_000)
    const answers = await Promise.all(Array.from({ length: 20 }, (_, number) => ask(`/${number}`, body)))
    expect(answers).toEqual(Array.from({ length: 20 }, (_, number) => `/${number} 100000`))
  })

  it('takes over waiting connections when the platform comes back', async () => {
    const first = open()
    await first.ready
    await first.close()
    const waiting = ask('/later')
    await open().ready
    expect(await waiting).toBe('/later 0')
  })

  it('goes on over lines that are cut while they wait', async () => {
    const reverse = open()
    await reverse.ready
    for (let round = 0; round < 5; round++) {
      for (const line of lines) line.destroy()
      expect(await ask(`/${round}`)).toBe(`/${round} 0`)
    }
  })

  it('says BrokerUnreachable while nobody outside answers', async () => {
    await expect(client.checkReversePort(inside)).rejects.toMatchObject({ code: 'BrokerUnreachable' })
    const reverse = open(1) // nothing listens there
    await reverse.ready
    await expect(client.checkReversePort(inside)).rejects.toMatchObject({ code: 'BrokerUnreachable' })
  })

  it('is refused with Conflict where a program inside has the port', async () => {
    const taker = createServer()
    await once(taker.listen(inside, '127.0.0.1'), 'listening')
    try {
      await expect(open().ready).rejects.toMatchObject({ code: 'Conflict' })
    } finally {
      taker.close()
    }
  })

  it('leaves other CONNECT requests alone', async () => {
    const request = get({ host: '127.0.0.1', port: daemonServer.port, method: 'CONNECT', path: 'example.org:443' })
    const [answer] = (await once(request, 'connect')) as [{ statusCode: number }]
    expect(answer.statusCode).toBe(400)
  })
})
