import { createSecureServer, type Http2SecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { defineKind, type KubeObject } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { HttpTransportOptions } from '../http-transport.js'
import type { KubeClient } from '../kube-client.js'
import { kubeClientFromConfig } from '../kube-client-from-config.js'
import { selfSigned } from '../self-signed.test-suite.js'

const things = defineKind<KubeObject>('example.org/v1', 'Thing', 'things')
const certificate = selfSigned()

type Answer = (stream: ServerHttp2Stream, method: string, path: string) => void

/** An HTTP/2 server whose answers each test writes, and which counts what reaches it. */
interface Peer {
  readonly port: number
  readonly sessions: ServerHttp2Session[]
  readonly streams: ServerHttp2Stream[]
  answer: Answer
  close(): Promise<void>
}

function answered(stream: ServerHttp2Stream, status = 200): void {
  stream.respond({ ':status': status, 'content-type': 'application/json' })
  stream.end(JSON.stringify({ apiVersion: 'example.org/v1', kind: 'Thing', metadata: { name: 'a' } }))
}

async function startPeer(): Promise<Peer> {
  const sessions: ServerHttp2Session[] = []
  const streams: ServerHttp2Stream[] = []
  const server: Http2SecureServer = createSecureServer(certificate)
  const peer: Peer = {
    sessions,
    streams,
    answer: (stream) => answered(stream),
    get port() {
      return (server.address() as AddressInfo).port
    },
    async close() {
      for (const session of sessions) session.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  server.on('session', (session) => {
    sessions.push(session)
    session.on('error', () => {}) // tests break connections on purpose
  })
  server.on('stream', (stream, headers) => {
    streams.push(stream)
    stream.on('error', () => {})
    stream.resume()
    peer.answer(stream, headers[':method'] ?? '', headers[':path'] ?? '')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return peer
}

/** A wire to the peer that can go dead without a word: open connections stay open and carry nothing any more. */
async function startWire(): Promise<{ port: number; goDead(): void; close(): Promise<void> }> {
  const ends = new Set<Socket>()
  const server = createServer((near) => {
    const far = connectTcp(peer.port, '127.0.0.1')
    near.pipe(far).pipe(near)
    for (const end of [near, far]) {
      ends.add(end)
      end.on('error', () => {})
      end.once('close', () => ends.delete(end))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    goDead() {
      for (const end of ends) end.unpipe().pause()
    },
    async close() {
      for (const end of ends) end.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

let peer: Peer
let client: KubeClient

function connect(options: HttpTransportOptions = {}, port: number = peer.port): KubeClient {
  return kubeClientFromConfig(
    {
      server: new URL(`https://127.0.0.1:${port}`),
      namespace: 'ns',
      tls: { ca: certificate.cert, rejectUnauthorized: true, servername: 'localhost' },
      credentials: async () => ({ authorization: 'Bearer secret' }),
      origin: 'the test',
    },
    { allowH2: true, connections: 1, ...options },
  )
}

beforeEach(async () => {
  peer = await startPeer()
  client = connect()
})
afterEach(async () => {
  await client.close()
  await peer.close()
})

const write = (name: string): Promise<unknown> =>
  client.patch(things, { name }, { type: 'merge', body: { metadata: {} } }, { timeoutMs: 10_000 })

it('a client closed while its connections come up fails its calls and throws nowhere else', async () => {
  // An error outside a call would end the test run.
  for (let turn = 0; turn < 20; turn += 1) {
    const early = connect({ connections: 3 })
    const calls = ['a', 'b', 'c'].map((name) =>
      early.find(things, { name }).then(
        () => 'answered',
        () => 'failed',
      ),
    )
    await new Promise((resolve) => setTimeout(resolve, turn % 5))
    await early.close()
    for (const end of await Promise.all(calls)) expect(['answered', 'failed']).toContain(end)
  }
})

describe('calls over HTTP/2', () => {
  it('are all under way at once on one connection, writes included', async () => {
    const waiting: ServerHttp2Stream[] = []
    peer.answer = (stream) => {
      waiting.push(stream)
      if (waiting.length === 40) for (const each of waiting) answered(each)
    }
    await Promise.all(Array.from({ length: 40 }, (_, index) => write(`thing-${index}`)))
    expect(peer.sessions).toHaveLength(1)
  })

  it('spread over as many connections as asked for', async () => {
    await client.close()
    client = connect({ connections: 3 })
    const waiting: ServerHttp2Stream[] = []
    peer.answer = (stream) => {
      waiting.push(stream)
      if (waiting.length === 9) for (const each of waiting) answered(each)
    }
    await Promise.all(Array.from({ length: 9 }, (_, index) => write(`thing-${index}`)))
    expect(peer.sessions).toHaveLength(3)
  })

  it('fail with ConnectionLost when the connection breaks, are sent once, and the next one connects anew', async () => {
    peer.answer = (_, method) => {
      if (method === 'PATCH') peer.sessions[0]?.destroy()
    }
    await expect(write('a')).rejects.toMatchObject({ code: 'ConnectionLost' })
    peer.answer = (stream) => answered(stream)
    await write('a')
    expect(peer.streams).toHaveLength(2)
    expect(peer.sessions).toHaveLength(2)
  })

  it('move to a new connection after the server said it will close this one', async () => {
    await write('a')
    peer.sessions[0]?.goaway()
    await expect.poll(() => write('b').then(() => peer.sessions.length)).toBe(2)
  })

  it('leave no connection behind, not even one the server had said goodbye on', async () => {
    peer.answer = (stream, _, path) => {
      if (!path.includes('watch=')) return answered(stream)
      stream.respond({ ':status': 200, 'content-type': 'application/json' }) // and nothing more: it stays open
    }
    const stop = new AbortController()
    const watching = (async () => {
      for await (const _ of client.watch(things, { resourceVersion: '1', signal: stop.signal }));
    })()
    await expect.poll(() => peer.streams.length).toBe(1)
    peer.sessions[0]?.goaway()
    await expect.poll(() => write('a').then(() => peer.sessions.length)).toBe(2)
    expect(peer.sessions.map((session) => session.destroyed)).toEqual([false, false])
    await client.close()
    await expect.poll(() => peer.sessions.map((session) => session.destroyed)).toEqual([true, true])
    stop.abort()
    await watching
  })

  it('fail with ConnectionLost when the other side fell silent, and the next one connects anew', async () => {
    await client.close()
    const wire = await startWire()
    try {
      client = connect({ keepAlive: { everyMs: 20, timeoutMs: 100 } }, wire.port)
      await write('a')
      wire.goDead()
      await expect(write('a')).rejects.toMatchObject({
        code: 'ConnectionLost',
        message: expect.stringContaining('did not answer a ping'),
      })
      await write('a')
      expect(peer.sessions).toHaveLength(2)
    } finally {
      await client.close()
      await wire.close()
    }
  })

  it.each([
    ['an abort', (signal: AbortSignal) => ({ signal }), 'stopping'],
    ['a timeout', () => ({ timeoutMs: 50 }), 'no answer within 50 ms'],
  ])('end with %s and tell the server', async (_, limits, message) => {
    const stop = new AbortController()
    const closed = new Promise<number>((resolve) => {
      peer.answer = (stream) => {
        stream.once('close', () => resolve(stream.rstCode))
        stop.abort(new Error('stopping'))
      }
    })
    await expect(client.get(things, { name: 'a' }, limits(stop.signal))).rejects.toThrow(message)
    const cancel = 8
    expect(await closed).toBe(cancel)
  })

  it('see a refusal of the server as its own words', async () => {
    peer.answer = (stream) => {
      stream.respond({ ':status': 409, 'content-type': 'application/json' })
      stream.end(JSON.stringify({ kind: 'Status', reason: 'Conflict', message: 'changed', code: 409 }))
    }
    await expect(write('a')).rejects.toMatchObject({ code: 'Conflict', message: expect.stringContaining('changed') })
  })

  it('say Timeout or ConnectionLost when nobody listens', async () => {
    await client.close()
    const { port } = peer
    await peer.close()
    client = kubeClientFromConfig(
      {
        server: new URL(`https://127.0.0.1:${port}`),
        namespace: 'ns',
        tls: { rejectUnauthorized: false },
        credentials: async () => ({}),
        origin: 'the test',
      },
      { allowH2: true, connections: 1 },
    )
    await expect(write('a')).rejects.toMatchObject({ code: 'ConnectionLost' })
    peer = await startPeer()
  })
})

describe('watches over HTTP/2', () => {
  const watched = async (): Promise<string[]> => {
    peer.answer = (stream, _, path) => {
      if (!path.includes('watch=')) return answered(stream)
      stream.respond({ ':status': 200, 'content-type': 'application/json' })
      const object = { apiVersion: 'example.org/v1', kind: 'Thing', metadata: { name: 'a', resourceVersion: '2' } }
      stream.write(`${JSON.stringify({ type: 'ADDED', object })}\n`)
    }
    const names: string[] = []
    const stop = new AbortController()
    for await (const { object } of client.watch(things, { resourceVersion: '1', signal: stop.signal })) {
      names.push(object.metadata.name)
      await write('b')
      stop.abort()
    }
    return names
  }

  it('share the connection of the calls, and end with their signal', async () => {
    expect(await watched()).toEqual(['a'])
    expect(peer.sessions).toHaveLength(1)
    await expect.poll(() => peer.streams.every((stream) => stream.closed)).toBe(true)
  })

  it('have one of their own where it is asked for', async () => {
    await client.close()
    client = connect({ separateWatchConnection: true })
    expect(await watched()).toEqual(['a'])
    expect(peer.sessions).toHaveLength(2)
  })
})
