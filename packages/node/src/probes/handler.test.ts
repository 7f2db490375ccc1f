import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { ByteStream } from '@corral/ports'
import type { Container } from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Cell } from '../isolation/isolation.js'
import { type Handler, type HandlerContext, runHandler } from './handler.js'

let server: Server
let port: number
let asked: { path: string | undefined; host: string | undefined; agent: string | undefined; extra: unknown } | undefined

beforeAll(async () => {
  server = createServer((request, response) => {
    const { host, 'user-agent': agent, 'x-extra': extra } = request.headers
    asked = { path: request.url, host, agent, extra }
    if (request.url === '/never') return
    response.writeHead(Number(request.url?.slice(1)) || 200).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const cell = { dial: (to: number) => dialled(to) } as Cell // only network handlers are tried here

const run = (handler: Handler, container: Partial<Container> = {}, rest: Partial<HandlerContext> = {}) =>
  runHandler(handler, {
    cell,
    container: { name: 'c', image: 'x', ...container },
    podIP: '100.64.0.2',
    timeoutMs: 5_000,
    signal: new AbortController().signal,
    ...rest,
  })

describe('runHandler', () => {
  it.each([
    { status: 200, ok: true },
    { status: 204, ok: true },
    { status: 302, ok: true },
    { status: 404, ok: false },
    { status: 500, ok: false },
  ])('takes an answer of $status as $ok', async ({ status, ok }) => {
    const result = await run({ httpGet: { port, path: `/${status}` } })
    expect(result.ok).toBe(ok)
    if (!ok) expect(result.message).toBe(`HTTP probe failed with statuscode: ${status}`)
  })

  it('asks as a kubelet does, for the port’s number or name', async () => {
    const ports = [{ name: 'web', containerPort: port }]
    const httpHeaders = [{ name: 'X-Extra', value: 'yes' }]
    expect((await run({ httpGet: { port: 'web', path: 'x', httpHeaders } }, { ports })).ok).toBe(true)
    expect(asked).toEqual({ path: '/x', host: `100.64.0.2:${port}`, agent: 'kube-probe/1.34', extra: 'yes' })
  })

  it('connects and lets go for tcpSocket', async () => {
    expect(await run({ tcpSocket: { port } })).toEqual({ ok: true, message: '' })
  })

  it.each<{ when: string; handler: () => Handler; timeoutMs?: number; says: RegExp }>([
    {
      when: 'nobody listens',
      handler: () => ({ tcpSocket: { port: 1 } }),
      says: /^dial tcp 100\.64\.0\.2:1: .*ECONNREFUSED/,
    },
    {
      when: 'the port has no such name',
      handler: () => ({ httpGet: { port: 'none' } }),
      says: /couldn't find port: none/,
    },
    {
      when: 'no answer comes in time',
      handler: () => ({ httpGet: { port, path: '/never' } }),
      timeoutMs: 50,
      says: /timed out after 0\.05s$/,
    },
    { when: 'there is nothing to do', handler: () => ({}), says: /no handler/ },
  ])('fails with a message when $when', async ({ handler, timeoutMs, says }) => {
    const result = await run(handler(), {}, timeoutMs === undefined ? {} : { timeoutMs })
    expect(result.ok).toBe(false)
    expect(result.message).toMatch(says)
  })
})

function dialled(to: number): Promise<ByteStream> {
  return new Promise((resolve, reject) => {
    const socket = connect(to, '127.0.0.1')
    socket.once('error', reject)
    socket.once('connect', () =>
      resolve({
        [Symbol.asyncIterator]: () => socket[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>,
        write: (chunk) => new Promise((done) => socket.write(chunk, () => done())),
        end: () => void socket.end(),
        destroy: () => void socket.destroy(),
      }),
    )
  })
}
