import { once } from 'node:events'
import { silentLogger } from '@corral/ports'
import type { TaskTerminal, TaskTerminals } from '@corral/tasks'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { createAccess } from './access.js'
import { listen } from './listen.js'
import { createSocketUpgrades } from './socket-upgrades.js'
import { terminalSocket } from './terminal-socket.js'

type Output = TaskTerminal['output'] extends AsyncIterable<infer Event> ? Event : never
const token = 'platform-token'
const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

/** A terminal that says these things, then waits for its end; what it is told is in `told`. */
async function start(output: readonly Output[], open?: TaskTerminals['open']) {
  const told: unknown[] = []
  let end: () => void = () => undefined
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const terminals: TaskTerminals = {
    open: async (task, { session, from, size }) => {
      told.push(['open', task, session, from, size])
      return {
        output: (async function* () {
          yield* output
          await ended
        })(),
        write: async (data) => void told.push(['write', Buffer.from(data).toString()]),
        resize: async (to) => void told.push(['resize', to]),
        close: async () => void told.push(['close']),
      }
    },
  }
  const handle = terminalSocket(open ? { ...terminals, open } : terminals)
  const routes = [{ path: /^\/tasks\/([^/]+)\/terminal$/, handle }]
  const sockets = createSocketUpgrades({ gate: createAccess({ token }).gate, routes, log: silentLogger })
  const server = await listen({ fetch: () => new Response('no'), port: 0, sockets })
  stops.push(() => server.close())
  const connect = (query: string, task = 'task-b') => {
    const address = `ws://127.0.0.1:${server.port}/tasks/${task}/terminal${query}`
    const socket = new WebSocket(address, { headers: { authorization: `Bearer ${token}` } })
    stops.push(() => socket.terminate())
    const heard: unknown[] = []
    socket.on('message', (data: Buffer, isBinary) =>
      heard.push(isBinary ? data.toString() : JSON.parse(data.toString())),
    )
    return { socket, heard }
  }
  return { told, end, connect }
}
const bytes = (text: string): Output =>
  ({ type: 'data', stream: 'stdout', offset: 0, data: Buffer.from(text) }) as Output

describe('a terminal in a browser', () => {
  it('shows what the shell says, and that it ended', async () => {
    const exit = { type: 'exit', exit: { exit_code: 3 } } as Output
    const { told, end, connect } = await start([bytes('hello'), { type: 'gap', bytes: 7 } as Output, exit])
    const { socket, heard } = connect('?session=one&from=5&columns=100&rows=30', 'task%20b')
    end()
    await once(socket, 'close')
    expect(heard).toEqual([
      { type: 'ready', session: 'one', offset: 5 },
      'hello',
      { type: 'gap', bytes: 7 },
      { type: 'exit', code: 3 },
    ])
    expect(told).toEqual([['open', 'task b', 'one', 5, { columns: 100, rows: 30 }], ['close']])
  })

  it.each([
    ['', 'main', 0, { columns: 80, rows: 24 }],
    ['?from=-1&columns=1001&rows=x', 'main', 0, { columns: 80, rows: 24 }],
    ['?from=0&columns=1000&rows=1', 'main', 0, { columns: 1000, rows: 1 }],
    ['?from=1.5', 'main', 0, { columns: 80, rows: 24 }],
  ])('opened with "%s" is session %s from %i of %j', async (query, session, from, size) => {
    const { told, end, connect } = await start([])
    const { socket } = connect(query)
    end()
    await once(socket, 'close')
    expect(told[0]).toEqual(['open', 'task-b', session, from, size])
  })

  it('passes on what is typed and each size, in their order', async () => {
    const { told, end, connect } = await start([])
    const { socket, heard } = connect('')
    await once(socket, 'open')
    socket.send(Buffer.from('ls\n'))
    socket.send(JSON.stringify({ type: 'resize', columns: 90, rows: 20 }))
    socket.send('not json')
    socket.send(Buffer.from('exit\n'))
    await expect.poll(() => told.length).toBe(4)
    expect(told.slice(1)).toEqual([
      ['write', 'ls\n'],
      ['resize', { columns: 90, rows: 20 }],
      ['write', 'exit\n'],
    ])
    expect(heard).toEqual([{ type: 'ready', session: 'main', offset: 0 }])
    end()
  })

  it('says why there is none, and refuses names that are no session', async () => {
    const refused = Object.assign(new Error('its sandbox is gone'), { code: 'SandboxNotReady' })
    const { connect } = await start([], () => Promise.reject(refused))
    const { socket, heard } = connect('')
    await once(socket, 'close')
    expect(heard).toMatchObject([{ type: 'error', error: { code: 'SandboxNotReady', message: 'its sandbox is gone' } }])
    for (const name of ['a%20b', '', 'x'.repeat(65), '../x']) {
      const other = connect(`?session=${name}`)
      const [code, reason] = (await once(other.socket, 'close')) as [number, Buffer]
      expect([name, code, String(reason)]).toEqual([name, 1008, 'not the name of a session'])
    }
  })
})
