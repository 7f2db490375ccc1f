import { connect } from 'node:net'
import { silentLogger, systemClock } from '@corral/ports'
import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { startEndpoints } from '../../packages/controllers/src/manager/endpoints.js'
import { createAccess } from '../../packages/server/src/access.js'
import { listen } from '../../packages/server/src/listen.js'
import { createSocketUpgrades } from '../../packages/server/src/socket-upgrades.js'

const token = 'platform-token'
const webSocket = [
  ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]
const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** What a server answers that is sent these lines; an address reaches it as it is written here, unlike with `fetch`. */
function answerTo(port: number, lines: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(`${lines.join('\r\n')}\r\n\r\n`))
    socket.on('data', (data) => {
      answer += String(data)
      if (!answer.includes('\r\n\r\n')) return
      resolve(answer)
      socket.destroy()
    })
    socket.on('error', reject).on('close', () => resolve(answer))
  })
}

async function startSockets(): Promise<number> {
  const routes = [{ path: /^\/rooms\/([^/]+)$/, handle: async () => undefined }]
  const sockets = createSocketUpgrades({ gate: createAccess({ token }).gate, routes, log: silentLogger })
  const server = await listen({ fetch: () => new Response('here'), port: 0, sockets })
  stops.push(() => server.close())
  return server.port
}

describe('an address that is none ends no process', () => {
  it.each<{ when: string; address: string; headers?: string[]; status: string }>([
    { when: 'has no host behind its slashes', address: '//', status: '400 Refused' },
    { when: 'has half a host', address: 'http://[::1', status: '400 Refused' },
    {
      when: 'has a byte that is no text where a name belongs',
      address: '/rooms/%ff',
      headers: [`Authorization: Bearer ${token}`],
      status: '404 Refused',
    },
    {
      when: 'is the control: a WebSocket that there is',
      address: '/rooms/one',
      headers: [`Authorization: Bearer ${token}`],
      status: '101 Switching Protocols',
    },
  ])('where a WebSocket’s $when', async ({ address, headers = [], status }) => {
    const port = await startSockets()
    const host = `Host: 127.0.0.1:${port}`
    const answer = await answerTo(port, [`GET ${address} HTTP/1.1`, host, ...webSocket, ...headers])
    expect(answer.split('\r\n')[0]).toBe(`HTTP/1.1 ${status}`)
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('here')
  })

  it.each(['//', 'http://[::1'])('where the manager is asked for its health at %s', async (address) => {
    const options = { metricsAddress: '127.0.0.1:0', healthAddress: '127.0.0.1:0', pprof: false, pprofDebug: false }
    const endpoints = await startEndpoints({
      options,
      metrics: new Registry(),
      clock: systemClock,
      log: silentLogger,
      onCertificate: () => undefined,
    })
    stops.push(() => endpoints.stop())
    for (const port of [endpoints.healthPort, endpoints.metricsPort]) {
      const answer = await answerTo(port ?? 0, [`GET ${address} HTTP/1.1`, 'Host: x'])
      expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 404 Not Found')
    }
    expect((await fetch(`http://127.0.0.1:${endpoints.healthPort}/healthz`)).status).toBe(200)
  })
})
