import { mkdirSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { join } from 'node:path'
import { silentLogger, systemClock } from '@corral/ports'
import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDaemon, type Daemon } from '../../packages/daemon/src/create-daemon.js'
import { type SandboxdServer, serveSandboxd } from '../../packages/daemon/src/sandboxd-server.js'

const guardMs = 120_000
const call = '/process.v1.ProcessService/Execute'

/** Whoever reaches the port of sandboxd's gRPC may send these, without a token. */
describe('a request to sandboxd whose address is none', () => {
  let scratch: TemporaryDirectory
  let daemon: Daemon
  let sandboxd: SandboxdServer
  beforeAll(async () => {
    scratch = temporaryDirectory()
    const root = join(scratch.path, 'workspace')
    mkdirSync(root)
    const options = { stateDir: join(scratch.path, 'state'), clock: systemClock, log: silentLogger, env: process.env }
    const runner = { workDir: join(scratch.path, 'work'), defaultCwd: root, onRunnerFinished: () => {} }
    daemon = await createDaemon({ ...options, ...runner })
    const { processes } = daemon
    const ports = { host: '127.0.0.1', restPort: 0, grpcPort: 0, metadataPrefix: 'SANDBOX_', refuse: () => 'no token' }
    sandboxd = await serveSandboxd({ ...ports, root, env: {}, processes, log: silentLogger })
  })
  afterAll(async () => {
    await sandboxd.close()
    await daemon.terminate(0)
    await daemon.close()
    await scratch[Symbol.asyncDispose]()
  })

  const json = 'Content-Type: application/json\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}'
  const firstLine = (head: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(sandboxd.grpcPort, '127.0.0.1', () => socket.write(`POST ${call} ${head}${json}`))
      let text = ''
      socket.on('data', (chunk) => {
        text += String(chunk)
      })
      socket.once('error', reject)
      socket.once('close', () => resolve(text.split('\r\n')[0] ?? ''))
    })
  const overHttp2 = (headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const session = connectHttp2(`http://127.0.0.1:${sandboxd.grpcPort}`)
      session.once('error', reject)
      const stream = session.request({
        ':method': 'POST',
        ':path': call,
        'content-type': 'application/json',
        ...headers,
      })
      stream.once('error', reject)
      stream.once('response', (answer) => resolve(Number(answer[':status'])))
      stream.once('close', () => session.destroy())
      stream.end('{}')
    })

  it.each([
    { what: 'a bracket as Host', head: 'HTTP/1.1\r\nHost: [\r\n', status: 400 },
    { what: 'a space in Host', head: 'HTTP/1.1\r\nHost: a b\r\n', status: 400 },
    { what: 'a port that is none', head: 'HTTP/1.1\r\nHost: a:port\r\n', status: 400 },
    { what: 'no Host at all', head: 'HTTP/1.0\r\n', status: 400 },
    { what: 'a host, but no token', head: 'HTTP/1.1\r\nHost: a\r\n', status: 401 },
  ])('over HTTP/1 with $what is answered $status', { timeout: guardMs }, async ({ head, status }) => {
    expect(await firstLine(head)).toContain(` ${status} `)
  })

  it.each([
    { what: 'a bracket as authority', authority: '[', status: 400 },
    { what: 'a host, but no token', authority: 'a', status: 401 },
  ])('over HTTP/2 with $what is answered $status', { timeout: guardMs }, async ({ authority, status }) => {
    expect(await overHttp2({ ':authority': authority })).toBe(status)
  })
})
