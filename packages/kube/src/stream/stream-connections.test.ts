import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ClusterAccess } from '../cluster-access.js'
import { selfSigned } from '../self-signed.test-suite.js'
import { StreamConnections } from './stream-connections.js'

const certificate = selfSigned()
const user = { cert: certificate.cert, key: certificate.key }
const otherUser = selfSigned()

let server: Server
let accepted: TLSSocket[]
let connections: StreamConnections

beforeEach(async () => {
  accepted = []
  server = createServer({ ...certificate, requestCert: true, rejectUnauthorized: false }, (socket) => {
    accepted.push(socket)
    socket.on('error', () => {}).on('data', (chunk) => socket.write(chunk))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  connections = new StreamConnections(accessTo((server.address() as AddressInfo).port))
})

afterEach(async () => {
  connections.close()
  for (const socket of accepted) socket.destroy()
  server.close()
  await once(server, 'close')
})

function accessTo(port: number): ClusterAccess {
  return {
    server: new URL(`https://127.0.0.1:${port}`),
    namespace: 'default',
    tls: { ca: certificate.cert, rejectUnauthorized: true },
    credentials: async () => user,
    origin: 'test',
  }
}

async function echo(socket: Socket): Promise<string> {
  socket.write('hello')
  const [answer] = await once(socket, 'data')
  return String(answer)
}

it('streams that follow each other find a connection open', async () => {
  const first = connections.take(user)
  expect(await echo(first)).toBe('hello')
  const second = connections.take(user)
  expect(await echo(second)).toBe('hello')
  await expect.poll(() => accepted.length).toBe(3)
  const third = connections.take(user)
  expect(third.connecting).toBe(false)
  expect(await echo(third)).toBe('hello')
  for (const socket of [first, second, third]) socket.destroy()
})

it('the second handshake resumes the session of the first, with the same certificate behind it', async () => {
  await echo(connections.take(user))
  await echo(connections.take(user))
  expect(accepted.map((socket) => socket.isSessionReused())).toEqual([false, true])
  const [first, second] = accepted.map((socket) => socket.getPeerCertificate().fingerprint256)
  expect(second).toBe(first)
})

it('another user gets neither the connection nor the session', async () => {
  await echo(connections.take(user))
  await echo(connections.take(user))
  await expect.poll(() => accepted.length).toBe(3)
  const other = connections.take(otherUser)
  expect(other.connecting).toBe(true)
  await echo(other)
  expect(accepted.at(-1)?.isSessionReused()).toBe(false)
  const [first, last] = [accepted[0], accepted.at(-1)].map((socket) => socket?.getPeerCertificate().fingerprint256)
  expect(last).not.toBe(first)
})

it('a spare the server has closed is not handed out', async () => {
  await echo(connections.take(user))
  await echo(connections.take(user))
  await expect.poll(() => accepted.length).toBe(3)
  accepted[2]?.end()
  await once(accepted[2] as TLSSocket, 'close')
  expect(await echo(connections.take(user))).toBe('hello')
})

it('a server that nobody trusts is told by the error of the connection', async () => {
  const access = { ...accessTo((server.address() as AddressInfo).port), tls: { rejectUnauthorized: true } }
  const [error] = await once(new StreamConnections(access).take(user), 'error')
  expect((error as NodeJS.ErrnoException).code).toBe('DEPTH_ZERO_SELF_SIGNED_CERT')
})
