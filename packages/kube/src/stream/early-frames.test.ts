import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { KubeClient } from '../kube-client.js'
import { kubeClientFromConfig } from '../kube-client-from-config.js'

const pod = { name: 'p' }
let server: Server
let client: KubeClient

/** A server whose first messages come in one piece with its answer to the upgrade, as fast servers' do. */
async function serve(messages: readonly Buffer[]): Promise<void> {
  server = createServer().on('upgrade', (request, socket) => {
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${webSocketId}`).digest('base64')
    const head = [
      'HTTP/1.1 101 Switching Protocols',
      'Connection: Upgrade',
      'Upgrade: websocket',
      `Sec-WebSocket-Accept: ${accept}`,
      'Sec-WebSocket-Protocol: v4.channel.k8s.io',
    ]
    const frames = messages.map((message) => Buffer.concat([Buffer.from([0x82, message.length]), message]))
    const closing = Buffer.from([0x88, 2, 0x03, 0xe8])
    socket.once('data', () => socket.end()) // the client's own goodbye
    socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), ...frames, closing]))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  client = kubeClientFromConfig({
    server: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    namespace: 'default',
    tls: { rejectUnauthorized: true },
    credentials: async () => ({}),
    origin: 'test',
  })
}
const webSocketId = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

afterEach(async () => {
  await client.close()
  await new Promise((resolve) => server.close(resolve))
})

const message = (channel: number, content: string | number[]): Buffer =>
  Buffer.concat([Buffer.from([channel]), Buffer.from(content as string)])

async function collect(source: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

describe('messages that come with the answer to the upgrade', () => {
  it('are read: a forwarded port loses no byte of the first answer', async () => {
    const port = [8888 & 255, 8888 >> 8]
    await serve([message(0, port), message(1, port), message(0, 'HTTP/1.1 202 Accepted\r\n')])
    const stream = await client.portForward(pod, 8888)
    expect(await collect(stream)).toBe('HTTP/1.1 202 Accepted\r\n')
  })

  it('are read: a short command loses neither its output nor its exit', async () => {
    const status =
      '{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"9"}]}}'
    await serve([message(1, 'out'), message(2, 'err'), message(3, status)])
    const process = await client.exec(pod, { command: ['x'] })
    expect([await collect(process.stdout), await collect(process.stderr)]).toEqual(['out', 'err'])
    expect(await process.exited).toEqual({ exitCode: 9 })
  })
})
