import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type ForwardPorts, forward } from './egress-dial.js'
import type { Destination } from './network-plan.js'

const servers: Server[] = []
afterEach(() => {
  vi.useRealTimers()
  for (const server of servers.splice(0)) server.close()
})

async function listening(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer(onConnection)
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as { port: number }).port
}

/** A client whose connection is carried to the destination. */
async function carried(destination: Destination, ports: Partial<ForwardPorts>): Promise<Socket> {
  const all: ForwardPorts = { addressesOf: async () => [], onFailure: () => {}, ...ports }
  const port = await listening((socket) => forward(socket, destination, all))
  return connect(port, '127.0.0.1')
}

async function heard(from: Socket, by: Socket): Promise<void> {
  const arrived = once(by, 'data')
  from.write('hello')
  await arrived
}

const codeOf = async (socket: Socket): Promise<unknown> => ((await once(socket, 'error')) as [{ code: string }])[0].code

describe('forward', () => {
  it.each([
    { who: 'neither side', says: undefined, stays: false },
    { who: 'the client', says: 'client', stays: true },
    { who: 'the server', says: 'server', stays: true },
  ])('where $who has said anything after half a minute the connection stays: $stays', async ({ says, stays }) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const accepted: Socket[] = []
    const port = await listening((socket) => accepted.push(socket.on('error', () => {})))
    const client = await carried({ kind: 'service', target: { host: '127.0.0.1', port } }, {})
    let code: string | undefined
    client.on('error', (error: NodeJS.ErrnoException) => {
      code = error.code
    })
    await vi.waitFor(() => expect(accepted).toHaveLength(1))
    const server = accepted[0] as Socket
    if (says === 'client') await heard(client, server)
    if (says === 'server') await heard(server, client)
    // The timer begins once the far side is there and was told so: a turn after it accepted.
    await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0))
    vi.advanceTimersByTime(30_000)
    if (stays) await heard(server, client)
    else await vi.waitFor(() => expect(code).toBe('ECONNRESET'))
    client.destroy()
    server.destroy()
  })

  it.each([
    { when: 'the name has no address', addresses: [], reason: 'Unresolved' },
    { when: 'it leads to this machine', addresses: ['127.0.0.1', '::1'], reason: 'ForbiddenAddress' },
    { when: 'it leads to the metadata of a cloud', addresses: ['169.254.169.254'], reason: 'ForbiddenAddress' },
  ])('refuses and says why when $when', async ({ addresses, reason }) => {
    const failures: unknown[] = []
    const destination: Destination = { kind: 'host', host: 'a.example', port: 443, mayBeLoopback: false }
    const client = await carried(destination, {
      addressesOf: async () => addresses,
      onFailure: (failure) => failures.push(failure),
    })
    expect(await codeOf(client)).toBe('ECONNRESET')
    expect(failures).toEqual([{ host: 'a.example', port: 443, reason }])
  })

  it('dials the address that was checked and asks for the name once', async () => {
    const port = await listening((socket) => socket.end('reached'))
    let asked = 0
    const client = await carried(
      { kind: 'host', host: 'rebinding.example', port, mayBeLoopback: true },
      { addressesOf: async () => (asked++ === 0 ? ['127.0.0.1'] : ['192.0.2.1']) },
    )
    expect(String((await once(client, 'data'))[0])).toBe('reached')
    expect(asked).toBe(1)
  })
})
