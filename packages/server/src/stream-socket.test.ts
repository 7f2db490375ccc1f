import { silentLogger } from '@corral/ports'
import type { StreamFrame, TaskEvent } from '@corral/protocol'
import type { TaskFeed, TaskListChange } from '@corral/tasks'
import { afterEach, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { createAccess } from './access.js'
import { type HttpServer, listen } from './listen.js'
import { createSocketUpgrades } from './socket-upgrades.js'
import { streamSocket } from './stream-socket.js'

const token = 'platform-token'
const stops: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

function eventsOf(count: number, filler = 'x'.repeat(200)): TaskEvent[] {
  const time = '2026-01-01T00:00:00.000Z'
  return Array.from({ length: count }, (_, index) => ({
    sequence: index + 1,
    time,
    type: 'output' as const,
    stream: 'stdout' as const,
    text: `line ${index + 1} ${filler}\n`,
  }))
}

async function start(events: readonly TaskEvent[] = []) {
  const listeners = new Set<(change: TaskListChange) => void>()
  const cursors: (string | undefined)[] = []
  const taken = { count: 0 }
  const feed: TaskFeed = {
    subscribe(cursor, listener) {
      cursors.push(cursor)
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: async () => {},
  }
  const tasks = {
    async events(id: string, { after }: { after: number }) {
      if (id !== 'task-a') throw Object.assign(new Error('there is no such task'), { code: 'TaskNotFound' })
      return (async function* () {
        for (const event of events.filter(({ sequence }) => sequence > after)) {
          taken.count += 1
          yield event
        }
      })()
    },
  }
  const { gate } = createAccess({ token })
  const sockets = createSocketUpgrades({
    gate,
    routes: [{ path: /^\/stream$/, handle: streamSocket(tasks, feed) }],
    log: silentLogger,
  })
  const server: HttpServer = await listen({ fetch: () => new Response('no'), port: 0, sockets })
  stops.push(() => server.close())
  const tell = (change: Partial<TaskListChange>) => {
    for (const listener of listeners) listener({ cursor: 'c', reset: false, changed: [], removed: [], ...change })
  }
  return { server, tell, cursors, listeners, taken }
}

function connect(server: HttpServer, path = '/stream', headers: Record<string, string> = {}) {
  const socket = new WebSocket(server.url.replace('http', 'ws') + path, {
    headers: { authorization: `Bearer ${token}`, ...headers },
  })
  const frames: StreamFrame[] = []
  socket.on('message', (data) => frames.push(JSON.parse(String(data)) as StreamFrame))
  stops.push(() => socket.terminate())
  const opened = new Promise<number>((resolve) => {
    socket.once('open', () => resolve(101))
    socket.once('unexpected-response', (_, response) => resolve(response.statusCode ?? 0))
    socket.on('error', () => undefined)
  })
  return { socket, frames, opened }
}

it('refuses a WebSocket of a page of another site, of another host, and without a token', async () => {
  const { server } = await start()
  expect(await connect(server, '/stream', { origin: 'https://evil.example' }).opened).toBe(403)
  expect(await connect(server, '/stream', { host: 'evil.example' }).opened).toBe(403)
  expect(await connect(server, '/stream', { authorization: '' }).opened).toBe(401)
  expect(await connect(server, '/other').opened).toBe(404)
})

it('sends events from where the reader stopped, in order, none twice, and says when none follows', async () => {
  const { server } = await start(eventsOf(1_200))
  const { socket, frames, opened } = connect(server)
  await opened
  socket.send(JSON.stringify({ type: 'subscribe', task: 'task-a', after: 700 }))
  await expect.poll(() => frames.some(({ type }) => type === 'ended')).toBe(true)
  const sequences = frames.flatMap((frame) => (frame.type === 'events' ? frame.events.map((e) => e.sequence) : []))
  expect(sequences).toEqual(Array.from({ length: 500 }, (_, index) => 701 + index))
})

it('tells of a task that is not there without ending the others', async () => {
  const { server } = await start(eventsOf(1))
  const { socket, frames, opened } = connect(server)
  await opened
  socket.send(JSON.stringify({ type: 'subscribe', task: 'task-b', after: 0 }))
  socket.send(JSON.stringify({ type: 'subscribe', task: 'task-a', after: 0 }))
  await expect.poll(() => frames.map(({ type }) => type).sort()).toEqual(['ended', 'events', 'failed'])
  expect(frames.find(({ type }) => type === 'failed')).toMatchObject({
    task: 'task-b',
    error: { code: 'TaskNotFound' },
  })
})

it('passes on the cursor a tab comes back with, and every change of the list', async () => {
  const { server, tell, cursors } = await start()
  const { frames, opened } = connect(server, '/stream?cursor=abc.7')
  await opened
  expect(cursors).toEqual(['abc.7'])
  tell({ cursor: 'abc.8', removed: ['task-x'] })
  await expect.poll(() => frames).toEqual([{ type: 'tasks', cursor: 'abc.8', changed: [], removed: ['task-x'] }])
})

it('lets a reader that does not read wait without keeping more than a little for it', async () => {
  const { server, taken } = await start(eventsOf(50_000))
  const slow = connect(server)
  await slow.opened
  slow.socket.pause()
  slow.socket.send(JSON.stringify({ type: 'subscribe', task: 'task-a', after: 0 }))
  await expect.poll(() => taken.count).toBeGreaterThan(100)
  const quick = connect(server)
  await quick.opened
  quick.socket.send(JSON.stringify({ type: 'subscribe', task: 'task-a', after: 49_990 }))
  await expect.poll(() => quick.frames.some(({ type }) => type === 'ended')).toBe(true)
  expect(taken.count).toBeLessThan(50_000)
  slow.socket.resume()
  await expect.poll(() => slow.frames.some(({ type }) => type === 'ended')).toBe(true)
  const received = slow.frames.reduce((sum, frame) => sum + (frame.type === 'events' ? frame.events.length : 0), 0)
  expect(received).toBe(50_000)
})

it('keeps no more of large events, which an agent writes by the hundred, than of small ones', async () => {
  // Each character of it takes six in JSON.
  const { server, taken } = await start(eventsOf(400, '\0'.repeat(16_000)))
  const slow = connect(server)
  await slow.opened
  slow.socket.pause()
  slow.socket.send(JSON.stringify({ type: 'subscribe', task: 'task-a', after: 0 }))
  await expect.poll(() => taken.count).toBeGreaterThan(10)
  const quick = connect(server)
  await quick.opened
  quick.socket.send(JSON.stringify({ type: 'subscribe', task: 'task-a', after: 399 }))
  await expect.poll(() => quick.frames.some(({ type }) => type === 'ended')).toBe(true)
  slow.socket.resume()
  await expect.poll(() => slow.frames.some(({ type }) => type === 'ended')).toBe(true)
  const counts = slow.frames.flatMap((frame) => (frame.type === 'events' ? [frame.events.length] : []))
  expect(Math.max(...counts)).toBe(3)
  expect(counts.reduce((sum, count) => sum + count)).toBe(400)
})

it('ends with the server, and forgets a tab that has left', async () => {
  const { server, listeners } = await start()
  const one = connect(server)
  const other = connect(server)
  await Promise.all([one.opened, other.opened])
  await expect.poll(() => listeners.size).toBe(2)
  one.socket.close()
  await expect.poll(() => listeners.size).toBe(1)
  await server.close()
  expect(listeners.size).toBe(0)
})

it('closes a connection that sends something else', async () => {
  const { server } = await start()
  const { socket, opened } = connect(server)
  await opened
  const closed = new Promise<number>((resolve) => socket.once('close', (code) => resolve(code)))
  socket.send('{"type":"shutdown"}')
  expect(await closed).toBe(1008)
})
