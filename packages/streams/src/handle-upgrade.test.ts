import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { ByteQueue, type ByteStream, type DuplexProcess, type ProcessExit } from '@corral/ports'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { handleUpgrade } from './handle-upgrade.js'
import type { ProcessStreams } from './stream-upgrade.js'

/** A process the test plays: what it wrote is in `input`, `end` lets it exit. */
class PlayedProcess implements DuplexProcess {
  readonly stdout = new ByteQueue()
  readonly stderr = new ByteQueue()
  readonly input: Buffer[] = []
  readonly sizes: string[] = []
  inputEnded = false
  killed = false
  private settle: (exit: ProcessExit) => void = () => {}
  readonly exited: Promise<ProcessExit> = new Promise((resolve) => {
    this.settle = resolve
  })
  constructor(
    readonly streams: ProcessStreams,
    readonly takesInput: () => Promise<void>,
  ) {}
  async writeStdin(chunk: Uint8Array): Promise<void> {
    await this.takesInput()
    this.input.push(Buffer.from(chunk))
  }
  endStdin(): void {
    this.inputEnded = true
  }
  resize(columns: number, rows: number): void {
    this.sizes.push(`${columns}x${rows}`)
  }
  kill(): void {
    this.killed = true
    this.end({ exitCode: 137 })
  }
  end(exit: ProcessExit): void {
    this.stdout.end()
    this.stderr.end()
    this.settle(exit)
  }
}

let server: Server
let port: number
let processes: PlayedProcess[]
let takesInput: () => Promise<void>
let open: Set<Promise<void>>
let dial: (port: number) => Promise<ByteStream>

beforeEach(async () => {
  processes = []
  open = new Set()
  takesInput = async () => {}
  dial = async () => {
    throw new Error('connection refused')
  }
  server = createServer()
  server.on('upgrade', (request, socket, head) => {
    const base = { request, socket, head, limits: { openTimeoutMs: 200, highWaterBytes: 64 * 1024 } }
    const done = request.url?.includes('portforward')
      ? handleUpgrade({ ...base, kind: 'portforward', dial: (number) => dial(number) })
      : handleUpgrade({
          ...base,
          kind: 'exec',
          async start(streams) {
            const process = new PlayedProcess(streams, takesInput)
            processes.push(process)
            return process
          },
        })
    open.add(done)
    void done.then(() => open.delete(done))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve))
  // Whatever the client did, nothing may be left running.
  await Promise.all(open)
})

const query = 'stdin=true&stdout=true&stderr=true'
function client(protocols: string[], search = query, path = 'exec') {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/${path}?${search}`, protocols)
  const messages: Buffer[] = []
  socket.on('message', (data) => messages.push(data as Buffer))
  const opened = new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject))
  const closed = new Promise<number>((resolve) => socket.once('close', resolve))
  socket.on('error', () => {})
  return { socket, messages, opened, closed }
}
const started = () => expect.poll(() => processes.length).toBe(1)

describe('exec over WebSocket', () => {
  it.each([
    { offered: ['v5.channel.k8s.io', 'v4.channel.k8s.io'], chosen: 'v5.channel.k8s.io' },
    { offered: ['v4.channel.k8s.io', 'v3.channel.k8s.io'], chosen: 'v4.channel.k8s.io' },
    { offered: ['channel.k8s.io', 'v2.channel.k8s.io'], chosen: 'v2.channel.k8s.io' },
    { offered: ['base64.channel.k8s.io'], chosen: 'base64.channel.k8s.io' },
    { offered: [], chosen: '' },
  ])('chooses "$chosen" from $offered', async ({ offered, chosen }) => {
    const { socket, opened, closed } = client(offered)
    await opened
    expect(socket.protocol).toBe(chosen)
    await started()
    processes[0]?.end({ exitCode: 0 })
    expect(await closed).toBe(1000)
  })

  it('v5: an empty first frame, output, errors, half-close, resize, status, close 1000', async () => {
    const { socket, messages, opened, closed } = client(['v5.channel.k8s.io'])
    await opened
    await started()
    const process = processes[0] as PlayedProcess
    socket.send(Buffer.concat([Buffer.from([0]), Buffer.from('typed')]))
    socket.send(Buffer.concat([Buffer.from([4]), Buffer.from('{"Width":80,"Height":24}')]))
    socket.send(Buffer.concat([Buffer.from([4]), Buffer.from('{"Width":-1,"Height":"x"}')]))
    socket.send(Buffer.from([255, 0]))
    await expect.poll(() => process.inputEnded).toBe(true)
    expect(Buffer.concat(process.input).toString()).toBe('typed')
    expect(process.sizes).toEqual(['80x24'])
    process.stdout.push(Buffer.from('out'))
    process.stderr.push(Buffer.from('err'))
    await expect.poll(() => messages.length).toBe(3)
    process.end({ exitCode: 3 })
    expect(await closed).toBe(1000)
    expect(messages[0]).toEqual(Buffer.from([1]))
    expect(messages.slice(1, 3).map(String).sort()).toEqual(['\x01out', '\x02err'])
    expect(messages[3]?.[0]).toBe(3)
    expect(JSON.parse(String(messages[3]?.subarray(1)))).toEqual({
      metadata: {},
      status: 'Failure',
      message: 'command terminated with non-zero exit code: exit status 3',
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: '3' }] },
    })
  })

  it('base64: frames are text with the channel as a digit', async () => {
    const { socket, messages, opened, closed } = client(['v4.base64.channel.k8s.io'])
    await opened
    await started()
    socket.send(`0${Buffer.from('typed').toString('base64')}`)
    await expect.poll(() => String(processes[0]?.input[0])).toBe('typed')
    processes[0]?.stdout.push(Buffer.from('out'))
    processes[0]?.end({ exitCode: 0 })
    await closed
    const texts = messages.map(String)
    expect(texts.slice(0, 2)).toEqual(['1', `1${Buffer.from('out').toString('base64')}`])
    expect(texts[2]?.[0]).toBe('3')
    expect(Buffer.from(texts[2]?.slice(1) ?? '', 'base64').toString()).toBe('{"metadata":{},"status":"Success"}')
  })

  it('does not read on while the process takes no input', async () => {
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    takesInput = () => gate
    const { socket, opened, closed } = client(['v5.channel.k8s.io'])
    await opened
    await started()
    const frame = Buffer.alloc(64 * 1024 + 1)
    for (let sent = 0; sent < 400; sent++) socket.send(frame)
    // 25 MB cannot all have left: somewhere between here and the process it is waiting.
    await expect.poll(() => socket.bufferedAmount).toBeGreaterThan(1_000_000)
    expect(processes[0]?.input).toEqual([])
    release()
    await expect.poll(() => processes[0]?.input.length).toBe(400)
    processes[0]?.end({ exitCode: 0 })
    expect(await closed).toBe(1000)
  })

  it.each([
    { how: 'closes', leave: (socket: WebSocket) => socket.close() },
    { how: 'vanishes', leave: (socket: WebSocket) => socket.terminate() },
    { how: 'sends a frame that is far too large', leave: (socket: WebSocket) => socket.send(Buffer.alloc(5_000_000)) },
  ])('kills the process when the client $how', async ({ leave }) => {
    const { socket, opened, closed } = client(['v4.channel.k8s.io'])
    await opened
    await started()
    leave(socket)
    await closed
    await expect.poll(() => processes[0]?.killed).toBe(true)
  })
})

describe('a request it cannot serve', () => {
  const request = (lines: string[]) =>
    new Promise<string>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.write([...lines, '', ''].join('\r\n')))
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk
      })
      socket.on('close', () => resolve(text))
      socket.on('error', () => {})
    })
  const spdy = (path: string, ...more: string[]) =>
    request([`POST ${path} HTTP/1.1`, 'Host: x', 'Connection: Upgrade', 'Upgrade: SPDY/3.1', ...more])
  const webSocket = (path: string, ...more: string[]) =>
    request([
      `GET ${path} HTTP/1.1`,
      ...['Host: x', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ...more,
    ])

  it.each([
    {
      when: 'it knows none of the WebSocket protocols',
      send: () => webSocket(`/exec?${query}`, 'Sec-WebSocket-Protocol: v9.channel.k8s.io'),
      says: ['403', 'v9.channel.k8s.io'],
    },
    {
      when: 'it knows none of the SPDY protocols',
      send: () => spdy(`/exec?${query}`, 'X-Stream-Protocol-Version: v9.channel.k8s.io'),
      says: ['403', 'v9.channel.k8s.io'],
    },
    { when: 'no stream is asked for', send: () => webSocket('/exec'), says: ['400', 'at least 1 of stdin'] },
    { when: 'no port is named', send: () => webSocket('/portforward'), says: ['400', 'ports'] },
    { when: 'a port is no port', send: () => webSocket('/portforward?ports=99999'), says: ['400', 'ports'] },
    {
      when: 'the protocol is another',
      send: () => request(['GET /exec HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: h2c']),
      says: ['400', 'Upgrade request required'],
    },
  ])('is answered with a Status when $when', async ({ send, says }) => {
    const answer = await send()
    expect(answer).toContain('"kind":"Status"')
    for (const words of says) expect(answer).toContain(words)
    expect(processes).toEqual([])
  })
})

describe('a hostile SPDY client', () => {
  const hello = ['POST /exec?stdin=true&stdout=true HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: SPDY/3.1']
  async function speak(...bytes: Buffer[]): Promise<Socket> {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    await new Promise<void>((resolve) => socket.once('connect', resolve))
    socket.write([...hello, '', ''].join('\r\n'))
    await new Promise((resolve) => socket.once('data', resolve))
    for (const part of bytes) socket.write(part)
    socket.resume()
    return socket
  }
  const gone = (socket: Socket) => expect.poll(() => socket.destroyed).toBe(true)

  it.each([
    { what: 'random bytes', bytes: [Buffer.from('80030001deadbeef', 'hex'), Buffer.alloc(2_000_000, 0x81)] },
    {
      what: 'a header block that is no zlib',
      bytes: [Buffer.from('800300010000000e0000000100000000000041414141', 'hex')],
    },
    { what: 'a SYN_STREAM that is too short', bytes: [Buffer.from('8003000100000002ffff', 'hex')] },
    { what: 'data for streams that never were', bytes: [Buffer.from('0000000700000003616263', 'hex')] },
    { what: 'nothing at all', bytes: [] },
  ])('that sends $what is let go and starts nothing', async ({ bytes }) => {
    const socket = await speak(...bytes)
    await gone(socket)
    expect(processes).toEqual([])
  })
})

describe('port-forward over WebSocket channels', () => {
  it('announces each port, then tells on the error channel why it cannot be reached', async () => {
    const { messages, opened, closed } = client(['v4.channel.k8s.io'], 'ports=8080,258', 'portforward')
    await opened
    expect(await closed).toBe(1000)
    const byChannel = (channel: number) =>
      Buffer.concat(messages.filter((frame) => frame[0] === channel).map((frame) => frame.subarray(1)))
    expect(byChannel(0)).toEqual(Buffer.from([0x90, 0x1f]))
    expect(byChannel(2)).toEqual(Buffer.from([2, 1]))
    expect(byChannel(1).subarray(2).toString()).toBe('error forwarding port 8080: connection refused')
    expect(byChannel(3).subarray(2).toString()).toBe('error forwarding port 258: connection refused')
  })

  it('closes when the port has said everything, as v4 has no half-close', async () => {
    const target = new ByteQueue()
    dial = async () => ({
      [Symbol.asyncIterator]: () => target[Symbol.asyncIterator](),
      async write() {},
      end() {},
      destroy() {},
    })
    const { messages, opened, closed } = client(['v4.channel.k8s.io'], 'ports=80', 'portforward')
    await opened
    target.push(Buffer.from('bye'))
    target.end()
    expect(await closed).toBe(1000)
    expect(String(messages.at(-1))).toBe('\x00bye')
  })
})
