import { once } from 'node:events'
import { silentLogger } from '@corral/ports'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { createAccess } from './access.js'
import { listen } from './listen.js'
import { createSocketUpgrades, type SocketHandler } from './socket-upgrades.js'

const token = 'platform-token'
const headers = { authorization: `Bearer ${token}` }
const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

async function start(handle: SocketHandler) {
  const logged: unknown[] = []
  const log = { ...silentLogger, error: (text: string, fields?: object) => void logged.push([text, fields]) }
  const routes = [
    { path: /^\/rooms\/([^/]+)\/([^/]+)$/, handle },
    { path: /^\/other$/, handle: async () => undefined },
  ]
  const sockets = createSocketUpgrades({ gate: createAccess({ token }).gate, routes, log })
  const server = await listen({ fetch: () => new Response('no'), port: 0, sockets })
  let isClosed = false
  const close = async (): Promise<void> => {
    if (!isClosed) await server.close()
    isClosed = true
  }
  stops.push(close)
  const connect = (path: string, given: Record<string, string> = headers): WebSocket => {
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}${path}`, { headers: given })
    socket.on('error', () => undefined) // one that was refused says so again when it is terminated
    stops.push(() => socket.terminate())
    return socket
  }
  return { logged, close, connect }
}

/** What a client is told whose WebSocket is refused. */
async function refusal(socket: WebSocket): Promise<unknown> {
  const [, answer] = (await once(socket, 'unexpected-response')) as [
    unknown,
    NodeJS.ReadableStream & { statusCode: number; headers: object },
  ]
  let text = ''
  for await (const chunk of answer) text += chunk
  return [answer.statusCode, answer.headers, JSON.parse(text)]
}

describe('a WebSocket', () => {
  it.each<{ when: string; path: string; headers: Record<string, string>; status: number; error: object }>([
    {
      when: 'there is none at that path',
      path: '/rooms/one',
      headers,
      status: 404,
      error: { code: 'NotFound', message: 'there is no WebSocket at /rooms/one' },
    },
    {
      when: 'the client has no token',
      path: '/rooms/one/two',
      headers: {},
      status: 401,
      error: { code: 'Unauthorized' },
    },
    {
      when: 'a page of another site opens it',
      path: '/rooms/one/two',
      headers: { ...headers, origin: 'https://evil.example' },
      status: 403,
      error: { code: 'Forbidden' },
    },
  ])('is refused when $when', async ({ path, headers, status, error }) => {
    let isOpened = false
    const { connect } = await start(async () => {
      isOpened = true
    })
    expect(await refusal(connect(path, headers))).toMatchObject([
      status,
      { 'content-type': 'application/json', connection: 'close', 'content-length': expect.stringMatching(/^\d+$/) },
      { error },
    ])
    expect(isOpened).toBe(false)
  })

  it('is served with the parts of its path and its query, and closed after that', async () => {
    const heard: unknown[] = []
    const { connect, logged } = await start(async (socket, { params, query, signal }) => {
      heard.push(params, Object.fromEntries(query), signal.aborted)
      socket.send('hello')
    })
    const socket = connect('/rooms/a%2Fb/c?d=e')
    const [data] = (await once(socket, 'message')) as [Buffer]
    await once(socket, 'close')
    expect([String(data), ...heard]).toEqual(['hello', ['a/b', 'c'], { d: 'e' }, false])
    expect(logged).toEqual([])
  })

  it('that fails is closed and told to the log by its path', async () => {
    const error = new Error('broken')
    const { connect, logged } = await start(() => Promise.reject(error))
    await once(connect('/rooms/a/b'), 'close')
    await expect.poll(() => logged).toEqual([['a WebSocket failed', { path: '/rooms/a/b', error }]])
  })

  it('whose client leaves is over, and its failure after that is no news', async () => {
    let isOver = false
    const { connect, logged, close } = await start(async (_socket, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      isOver = true
      throw new Error('aborted')
    })
    const socket = connect('/rooms/a/b')
    await once(socket, 'open')
    socket.terminate()
    await expect.poll(() => isOver).toBe(true)
    await close()
    expect(logged).toEqual([])
  })

  it('ends with the server, which waits for its last words', async () => {
    const steps: string[] = []
    const { connect, close } = await start(async (_socket, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      await new Promise((resolve) => setImmediate(resolve))
      steps.push('cleaned up')
    })
    const socket = connect('/rooms/a/b')
    await once(socket, 'open')
    const gone = once(socket, 'close')
    await close()
    steps.push('closed')
    await gone
    expect(steps).toEqual(['cleaned up', 'closed'])
  })

  it('that is sent more than a message may have is closed', async () => {
    const { connect } = await start(async (_socket, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    })
    const socket = connect('/rooms/a/b')
    await once(socket, 'open')
    socket.send(Buffer.alloc(256 * 1024 + 1))
    expect((await once(socket, 'close'))[0]).not.toBe(1000)
  })
})
