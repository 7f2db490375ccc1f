import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ApiServer, createApiServer } from '../server/api-server.js'
import { memoryStorage } from '../storage/memory-storage.js'
import { ensureCertificates, type KeyPair } from './certificates.js'
import { type HttpsEndpoint, serveHttps } from './serve-https.js'

let directory: string
let server: ApiServer
let endpoint: HttpsEndpoint
let foreign: KeyPair

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'corral-resumed-'))
  server = await createApiServer({ storage: memoryStorage() })
  endpoint = await serveHttps({ server, port: 0, dataDir: directory })
  foreign = (await ensureCertificates(join(directory, 'elsewhere'))).admin
})

afterAll(async () => {
  await endpoint.close()
  await server.close()
  rmSync(directory, { recursive: true, force: true })
})

/** The status of one request on a connection of its own, and a session to go on with. */
async function ask(
  pair: KeyPair | undefined,
  session?: Buffer,
): Promise<{ status: number; isReused: boolean; session: Buffer | undefined }> {
  let issued: Buffer | undefined
  const socket = connect({
    host: '127.0.0.1',
    port: endpoint.port,
    servername: '',
    ca: endpoint.tls.ca.cert,
    ...(pair ? { cert: pair.cert, key: pair.key } : {}),
    ...(session ? { session } : {}),
  })
  socket.on('session', (next: Buffer) => {
    issued = next
  })
  await once(socket, 'secureConnect')
  const isReused = socket.isSessionReused()
  socket.write('GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
  const [answer] = await once(socket, 'data')
  socket.destroy()
  return { status: Number(String(answer).split(' ')[1]), isReused, session: issued }
}

it.each<[string, () => KeyPair | undefined, number]>([
  ['the administrator stays who they are', () => endpoint.tls.admin, 200],
  ['nobody stays nobody', () => undefined, 401],
  ['a certificate of another authority stays worth nothing', () => foreign, 401],
])('on a resumed session %s', async (_, pair, status) => {
  const first = await ask(pair())
  expect(first).toMatchObject({ status, isReused: false })
  const second = await ask(pair(), first.session)
  expect(second).toMatchObject({ status, isReused: true })
})
