import { createSecureServer, type Http2SecureServer } from 'node:http2'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { defineKind, type KubeObject } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ClusterAccess } from '../cluster-access.js'
import { kubeClientFromConfig } from '../kube-client-from-config.js'
import { selfSigned } from '../self-signed.test-suite.js'
import { StreamConnections } from '../stream/stream-connections.js'

const things = defineKind<KubeObject>('example.org/v1', 'Thing', 'things')
const certificate = selfSigned()

/** A SOCKS5 proxy that leads every connection to one port, and remembers what it was asked. */
interface Socks {
  readonly server: Server
  readonly asked: string[]
  user?: string
  refusal?: number
}

function socksTo(port: () => number): Socks {
  const asked: string[] = []
  const server = createServer((near) => {
    near.on('error', () => {})
    void serve(near).catch(() => near.destroy())
  })
  const socks: Socks = { server, asked }
  async function serve(near: Socket): Promise<void> {
    const bytes = reader(near)
    const [, count = 0] = await bytes(2)
    const methods = [...(await bytes(count))]
    const method = socks.user === undefined ? 0 : 2
    near.write(Buffer.from([5, methods.includes(method) ? method : 0xff]))
    if (!methods.includes(method)) return
    if (method === 2) {
      const [, userLength = 0] = await bytes(2)
      const user = String(await bytes(userLength))
      const [length = 0] = await bytes(1)
      const isKnown = `${user}:${await bytes(length)}` === socks.user
      near.write(Buffer.from([1, isKnown ? 0 : 1]))
      if (!isKnown) return
    }
    const [, , , type = 0] = await bytes(4)
    const lengths: Record<number, number> = { 1: 4, 4: 16 }
    const host = await bytes(lengths[type] ?? (await bytes(1))[0] ?? 0)
    asked.push(`${type} ${type === 3 ? host : host.toString('hex')} ${(await bytes(2)).readUInt16BE()}`)
    const reply = Buffer.from([5, socks.refusal ?? 0, 0, 1, 0, 0, 0, 0, 0, 0])
    if (socks.refusal !== undefined) return void near.end(reply)
    const far = connect(port(), '127.0.0.1', () => {
      near.write(reply)
      near.pipe(far).pipe(near)
    })
    far.on('error', () => near.destroy())
    near.once('close', () => far.destroy())
  }
  return socks
}

function reader(socket: Socket): (count: number) => Promise<Buffer> {
  return async (count) => {
    for (;;) {
      const chunk: Buffer | null = count === 0 ? Buffer.alloc(0) : socket.read(count)
      if (chunk) return chunk
      if (socket.destroyed) throw new Error('gone')
      await new Promise((resolve) => {
        socket.once('readable', resolve)
        socket.once('close', resolve)
      })
    }
  }
}

const listening = async (server: Server | Http2SecureServer): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

describe('through a SOCKS5 proxy', () => {
  let server: Http2SecureServer
  let versions: string[]
  let port: number
  let socks: Socks
  let socksPort: number
  const open = new Set<{ destroy(): unknown }>()

  beforeEach(async () => {
    versions = []
    server = createSecureServer({ ...certificate, allowHTTP1: true }, (request, response) => {
      versions.push(request.httpVersion)
      response.writeHead(200, { 'content-type': 'application/json' })
      const object = { apiVersion: 'example.org/v1', kind: 'Thing', metadata: { name: 'one', resourceVersion: '5' } }
      if (!request.url?.includes('watch=')) return void response.end(JSON.stringify(object))
      response.write(`${JSON.stringify({ type: 'ADDED', object })}\n`)
    })
    port = await listening(server)
    socks = socksTo(() => port)
    socksPort = await listening(socks.server)
    for (const each of [server, socks.server]) each.on('connection', (socket: Socket) => open.add(socket))
  })
  afterEach(async () => {
    for (const socket of open) socket.destroy()
    open.clear()
    for (const each of [server, socks.server]) await new Promise((resolve) => each.close(resolve))
  })

  const access = (user = '', host = 'localhost'): ClusterAccess => ({
    server: new URL(`https://${host}:${port}`),
    proxy: new URL(`socks5://${user}127.0.0.1:${socksPort}`),
    namespace: 'default',
    tls: { ca: certificate.cert, rejectUnauthorized: true, servername: 'localhost' },
    credentials: async () => ({ authorization: 'Bearer t' }),
    origin: 'test',
  })

  it.each([
    { version: '1.1', allowH2: false },
    { version: '2.0', allowH2: true },
  ])('calls and watches reach the server over HTTP/$version', async ({ version, allowH2 }) => {
    const client = kubeClientFromConfig(access(), { allowH2 })
    try {
      expect((await client.get(things, { name: 'one' })).metadata?.name).toBe('one')
      for await (const event of client.watch(things, { resourceVersion: '1' })) {
        expect(event.type).toBe('ADDED')
        break
      }
    } finally {
      await client.close()
    }
    expect(new Set(versions)).toEqual(new Set([version]))
    expect(new Set(socks.asked)).toEqual(new Set([`3 localhost ${port}`]))
  })

  it('a connection for a stream reaches the server', async () => {
    const socket = new StreamConnections(access()).take({})
    socket.write('GET /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    expect(text).toMatch(/^HTTP\/1\.1 200/)
  })

  it.each([
    { host: '127.0.0.1', asked: '1 7f000001' },
    { host: '[::1]', asked: '4 00000000000000000000000000000001' },
    { host: '[fd00::1:0:2]', asked: '4 fd000000000000000000000100000002' },
    { host: '[::ffff:10.1.2.3]', asked: '4 00000000000000000000ffff0a010203' },
  ])('the address $host is asked for as one', async ({ host, asked }) => {
    const client = kubeClientFromConfig(access('', host))
    await client.get(things, { name: 'one' })
    await client.close()
    expect(socks.asked).toEqual([`${asked} ${port}`])
  })

  it('user and password of the URL are said when the proxy asks', async () => {
    socks.user = 'jane:a!b'
    const client = kubeClientFromConfig(access('jane:a%21b@'))
    expect((await client.get(things, { name: 'one' })).metadata?.name).toBe('one')
    await client.close()
  })

  it.each<{ when: string; user: string; refusal?: number; wants?: string; says: string }>([
    { when: 'refuses', user: '', refusal: 2, says: 'not allowed by its rules' },
    { when: 'cannot reach the server', user: '', refusal: 5, says: 'connection refused' },
    { when: 'wants a user we have not', user: '', wants: 'jane:secret', says: 'a way of authentication' },
    { when: 'knows another password', user: 'jane:wrong@', wants: 'jane:secret', says: 'refuses user and password' },
  ])('a proxy that $when is a lost connection that says so', async ({ user, refusal, wants, says }) => {
    if (refusal !== undefined) socks.refusal = refusal
    if (wants !== undefined) socks.user = wants
    for (const allowH2 of [false, true]) {
      const client = kubeClientFromConfig(access(user), { allowH2 })
      const failed = client.create(things, { metadata: { name: 'one', namespace: 'default' } })
      await expect(failed).rejects.toMatchObject({ code: 'ConnectionLost', message: expect.stringContaining(says) })
      await client.close()
    }
  })

  it('a proxy that says nothing is a timeout', async () => {
    await new Promise((resolve) => socks.server.close(resolve))
    const silent = createServer((socket) => void open.add(socket))
    socksPort = await listening(silent)
    const client = kubeClientFromConfig(access(), { connectTimeoutMs: 100 })
    await expect(client.create(things, { metadata: { name: 'one' } })).rejects.toMatchObject({ code: 'Timeout' })
    await client.close()
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => silent.close(resolve))
    socks.server.listen(0)
  })
})
