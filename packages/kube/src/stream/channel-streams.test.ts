import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import type { KubeClient } from '../kube-client.js'
import { kubeClientFromConfig } from '../kube-client-from-config.js'

let server: Server
let sockets: WebSocketServer
let client: KubeClient
let connections: WebSocket[]
/** What the server under test chooses from the client's offer. */
let choose: (offered: Set<string>) => string | false
const pod = { name: 'p' }

beforeEach(async () => {
  connections = []
  choose = (offered) => (offered.has('v4.channel.k8s.io') ? 'v4.channel.k8s.io' : false)
  server = createServer()
  sockets = new WebSocketServer({ server, handleProtocols: (offered) => choose(offered) })
  sockets.on('connection', (socket) => connections.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  client = kubeClientFromConfig({
    server: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    namespace: 'default',
    tls: { rejectUnauthorized: true },
    credentials: async () => ({}),
    origin: 'test',
  })
})
afterEach(async () => {
  await client.close()
  for (const socket of connections) socket.terminate()
  sockets.close()
  await new Promise((resolve) => server.close(resolve))
})

const connected = async (): Promise<WebSocket> => {
  await expect.poll(() => connections.length).toBe(1)
  return connections[0] as WebSocket
}
const frame = (channel: number, text: string | Buffer) => Buffer.concat([Buffer.from([channel]), Buffer.from(text)])
async function collect(source: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

describe('exec on a server that only knows v4', () => {
  it.each([
    { status: '{"metadata":{},"status":"Success"}', exit: { exitCode: 0 } },
    {
      status:
        '{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"9"}]}}',
      exit: { exitCode: 9 },
    },
    {
      status: '{"status":"Failure","reason":"InternalError","message":"no such program"}',
      exit: { exitCode: 255, message: 'no such program' },
    },
    { status: 'words of an old server', exit: { exitCode: 255, message: 'words of an old server' } },
  ])('reads the exit from $status', async ({ status, exit }) => {
    const process = await client.exec(pod, { command: ['x'] })
    const socket = await connected()
    socket.send(frame(1, 'out'))
    socket.send(frame(3, status.slice(0, 5)))
    socket.send(frame(3, status.slice(5)))
    socket.close(1000)
    expect(await process.exited).toEqual(exit)
    expect(await collect(process.stdout)).toBe('out')
  })

  it('sends no close frame, which such a server would take for data', async () => {
    const process = await client.exec(pod, { command: ['x'], stdin: true })
    const socket = await connected()
    const received: Buffer[] = []
    socket.on('message', (data) => received.push(data as Buffer))
    process.endStdin()
    process.resize(10, 20)
    await expect.poll(() => received.map(String)).toEqual(['\x04{"Width":10,"Height":20}'])
    process.kill()
    expect(await process.exited).toMatchObject({ exitCode: 137 })
  })

  it('refuses a server that chooses a protocol nobody offered', async () => {
    choose = () => false
    await expect(client.exec(pod, { command: ['x'] })).rejects.toThrow('Server sent no subprotocol')
  })
})

describe('port-forward on a server that only knows v4', () => {
  it("drops each channel's announcement of its port, even in pieces", async () => {
    const stream = await client.portForward(pod, 8080)
    const socket = await connected()
    socket.send(frame(0, Buffer.from([0x90])))
    socket.send(frame(0, Buffer.concat([Buffer.from([0x1f]), Buffer.from('da')])))
    socket.send(frame(1, Buffer.from([0x90, 0x1f])))
    socket.send(frame(0, 'ta'))
    socket.close(1000)
    expect(await collect(stream)).toBe('data')
  })

  it('fails with the words of the error channel', async () => {
    const stream = await client.portForward(pod, 8080)
    const socket = await connected()
    socket.send(frame(1, Buffer.concat([Buffer.from([0x90, 0x1f]), Buffer.from('nobody listens')])))
    socket.close(1000)
    await expect(collect(stream)).rejects.toMatchObject({
      code: 'PortForwardFailed',
      message: 'port 8080: nobody listens',
    })
  })

  const most = 129 * 1024
  it.each([
    { what: 'an empty write is no message', sizes: [0], messages: [] },
    { what: 'pieces go in one message', sizes: [7, 65_536, 2, 7, 65_536, 2], messages: [131_090] },
    { what: 'a message ends at its limit, inside a piece', sizes: [most - 1, 3], messages: [most, 2] },
    { what: 'a piece of several messages', sizes: [2 * most + 5], messages: [most, most, 5] },
  ])('writes pieces in order: $what', async ({ sizes, messages }) => {
    const stream = await client.portForward(pod, 8080)
    const socket = await connected()
    const received: Buffer[] = []
    socket.on('message', (data) => received.push(data as Buffer))
    const pieces = sizes.map((size, index) => Buffer.alloc(size, index + 1))
    await stream.writeAll?.(pieces)
    await stream.write(Buffer.from('end'))
    await expect.poll(() => received.at(-1)?.toString('utf8')).toBe('\0end')
    const data = received.slice(0, -1)
    expect(data.map(({ length }) => length - 1)).toEqual(messages)
    expect(data.every(([channel]) => channel === 0)).toBe(true)
    expect(Buffer.concat(data.map((message) => message.subarray(1))).equals(Buffer.concat(pieces))).toBe(true)
    stream.destroy()
  })
})
