import { connect, isIP, type Socket } from 'node:net'
import { KubeError } from '@corral/resources'
import type { Tunnelled, TunnelOptions } from './proxy-tunnel.js'

const version = 5
const noAuthentication = 0
const userAndPassword = 2
const addressTypes = { ipv4: 1, name: 3, ipv6: 4 } as const

const refusals: Readonly<Record<number, string>> = {
  1: 'general failure',
  2: 'not allowed by its rules',
  3: 'network unreachable',
  4: 'host unreachable',
  5: 'connection refused',
  6: 'time to live expired',
  7: 'command not supported',
  8: 'address type not supported',
}

/**
 * Asks a SOCKS5 proxy for a connection, with user and password where the URL has them. The proxy resolves the name of
 * the host. Rejects with `ConnectionLost` or `Timeout`.
 */
export async function socksConnect(
  { proxy, host, port, timeoutMs }: TunnelOptions,
  signal: AbortSignal,
): Promise<Tunnelled> {
  const socket = connect({ host: proxy.hostname.replace(/^\[|\]$/g, ''), port: Number(proxy.port) || 1080 })
  const name = `the proxy ${proxy.host}`
  socket.on('error', () => {}) // the pending read or write gets the error
  const end = (): void => void socket.destroy()
  const late = (): void => void socket.destroy(new KubeError('Timeout', `${name}: no answer in ${timeoutMs} ms`))
  const timer = setTimeout(late, timeoutMs)
  signal.addEventListener('abort', end, { once: true })
  try {
    await negotiate(socket, proxy)
    await ask(socket, host, port)
    return { socket, head: Buffer.alloc(0) }
  } catch (cause) {
    socket.destroy()
    if (cause instanceof KubeError) throw cause
    throw new KubeError('ConnectionLost', `${name}: ${(cause as Error).message}`, { cause })
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}

async function negotiate(socket: Socket, { username, password }: URL): Promise<void> {
  const methods = username === '' ? [noAuthentication] : [noAuthentication, userAndPassword]
  socket.write(Buffer.from([version, methods.length, ...methods]))
  const [spoken, method] = await take(socket, 2)
  if (spoken !== version) throw new Error('it does not speak SOCKS5')
  if (method === noAuthentication) return
  if (method !== userAndPassword || username === '') throw new Error('it wants a way of authentication we do not have')
  const parts = [username, password].map((part) => lengthAndBytes(decodeURIComponent(part)))
  socket.write(Buffer.concat([Buffer.from([1]), ...parts]))
  const [, status] = await take(socket, 2)
  if (status !== 0) throw new Error('it refuses user and password')
}

async function ask(socket: Socket, host: string, port: number): Promise<void> {
  const portBytes = Buffer.from([port >> 8, port & 0xff])
  socket.write(Buffer.concat([Buffer.from([version, 1, 0]), address(host), portBytes]))
  const [, reply = 1, , type = 0] = await take(socket, 4)
  if (reply !== 0) throw new Error(`no connection to ${host}:${port}: ${refusals[reply] ?? `refusal ${reply}`}`)
  const length = type === addressTypes.ipv4 ? 4 : type === addressTypes.ipv6 ? 16 : ((await take(socket, 1))[0] ?? 0)
  await take(socket, length + 2)
}

function address(host: string): Buffer {
  if (isIP(host) === 4) return Buffer.from([addressTypes.ipv4, ...host.split('.').map(Number)])
  if (isIP(host) === 6) return Buffer.from([addressTypes.ipv6, ...ipv6Bytes(host)])
  return Buffer.concat([Buffer.from([addressTypes.name]), lengthAndBytes(host)])
}

function ipv6Bytes(host: string): number[] {
  // The URL parser writes an embedded IPv4 part as two groups, which leaves one form to read.
  const canonical = new URL(`http://[${host}]`).hostname.slice(1, -1)
  const [first = '', last] = canonical.split('::').map((half) => half.split(':').filter((group) => group !== ''))
  const tail = last ?? []
  const groups = [...first, ...Array.from({ length: 8 - first.length - tail.length }, () => '0'), ...tail]
  return groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff])
}

function lengthAndBytes(text: string): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length > 255) throw new Error('a name, user or password is longer than SOCKS5 can say')
  return Buffer.concat([Buffer.from([bytes.length]), bytes])
}

/** Exactly so many bytes; what follows them stays in the socket. */
async function take(socket: Socket, count: number): Promise<Buffer> {
  for (;;) {
    const chunk: Buffer | null = socket.read(count)
    if (chunk && chunk.length === count) return chunk
    if (chunk || socket.readableEnded || socket.destroyed) throw new Error('it closed the connection')
    await changed(socket)
  }
}

function changed(socket: Socket): Promise<void> {
  const events = ['readable', 'end', 'close', 'error']
  return new Promise((resolve, reject) => {
    const settle = (error?: unknown): void => {
      for (const event of events) socket.off(event, settle)
      if (error instanceof Error) reject(error)
      else resolve()
    }
    for (const event of events) socket.on(event, settle)
  })
}
