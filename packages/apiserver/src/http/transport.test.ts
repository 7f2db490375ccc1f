import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiServer, createApiServer } from '../server/api-server.js'
import { memoryStorage } from '../storage/memory-storage.js'
import { type HttpsEndpoint, serveHttps } from './serve-https.js'

let directory: string
let server: ApiServer
let endpoint: HttpsEndpoint
const configMaps = '/api/v1/namespaces/default/configmaps'

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'corral-transport-'))
  server = await createApiServer({ storage: memoryStorage() })
  endpoint = await serveHttps({ server, port: 0, dataDir: directory, watchKeepAliveMs: 20 })
})

afterAll(async () => {
  await endpoint.close()
  await server.close()
  rmSync(directory, { recursive: true, force: true })
})

function open(path: string, headers: Record<string, string> = {}, body?: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      endpoint.url + path,
      {
        ca: endpoint.tls.ca.cert,
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${endpoint.token}`, ...headers },
        agent: false,
      },
      resolve,
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

async function read(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

describe('TLS', () => {
  it('the certificate is on P-256 and names every way to say this machine or this cluster', () => {
    const { subjectAltName = '', publicKey } = new X509Certificate(endpoint.tls.server.cert)
    expect(publicKey.asymmetricKeyDetails).toMatchObject({ namedCurve: 'prime256v1' })
    const names = ['DNS:localhost', 'DNS:kubernetes', 'DNS:kubernetes.default', 'DNS:kubernetes.default.svc']
    for (const name of [...names, 'IP Address:127.0.0.1', 'IP Address:0:0:0:0:0:0:0:1'])
      expect(subjectAltName.split(', ')).toContain(name)
  })

  it('speaks HTTP/1.1 to a client that offers HTTP/2 as well', async () => {
    const options = {
      port: endpoint.port,
      host: '127.0.0.1',
      ca: endpoint.tls.ca.cert,
      ALPNProtocols: ['h2', 'http/1.1'],
    }
    const socket = connect(options)
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
    expect(socket.alpnProtocol).toBe('http/1.1')
    socket.destroy()
  })
})

describe('headers', () => {
  it('each answer has an id of its own and is not to be kept', async () => {
    const answers = [await open(configMaps), await open(`${configMaps}/none`), await open('/livez')]
    for (const answer of answers) {
      expect(answer.headers['cache-control']).toBe('no-cache, private')
      expect(answer.headers['audit-id']).toMatch(/^[0-9a-f-]{36}$/)
      answer.resume()
    }
    expect(new Set(answers.map(({ headers }) => headers['audit-id'])).size).toBe(3)
  })

  it('a command of half a megabyte fits into a URL, and beyond one megabyte is 431', async () => {
    const long = await open(`${configMaps}/none?command=${'x'.repeat(512 * 1024)}`)
    expect(long.statusCode).toBe(404)
    long.resume()
    const tooLong = await open(`${configMaps}/none?command=${'x'.repeat(1024 * 1024)}`)
    expect(tooLong.statusCode).toBe(431)
    tooLong.resume()
  })

  it('a browser may carry its token in a sub-protocol', async () => {
    const token = Buffer.from(endpoint.token).toString('base64url')
    const offered = `v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.${token}`
    const plain = { connection: 'close', 'sec-websocket-protocol': offered }
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = { ca: endpoint.tls.ca.cert, headers: plain, agent: false }
      request(endpoint.url + configMaps, options, resolve)
        .on('error', reject)
        .end()
    })
    expect(answer.statusCode).toBe(200)
    answer.resume()
  })
})

describe('compression', () => {
  it('large answers are compressed for who takes it, small ones and others are not', async () => {
    const headers = { 'content-type': 'application/json' }
    const data = { blob: 'x'.repeat(200_000) }
    ;(await open(configMaps, headers, JSON.stringify({ metadata: { name: 'large' }, data }))).resume()
    const compressed = await open(`${configMaps}/large`, { 'accept-encoding': 'gzip' })
    expect(compressed.headers['content-encoding']).toBe('gzip')
    expect(JSON.parse(gunzipSync(await read(compressed)).toString()).data).toEqual(data)
    for (const [path, encoding] of [
      [`${configMaps}/large`, 'identity'],
      [`${configMaps}/none`, 'gzip'],
    ] as const) {
      const answer = await open(path, { 'accept-encoding': encoding })
      expect(answer.headers['content-encoding']).toBeUndefined()
      answer.resume()
    }
    const watch = await open(`${configMaps}?watch=1`, { 'accept-encoding': 'gzip' })
    expect(watch.headers['content-encoding']).toBeUndefined()
    watch.destroy()
  })
})

it('an idle watch sends a space now and then, which is no event', async () => {
  const list = JSON.parse((await read(await open(configMaps))).toString())
  const watch = await open(`${configMaps}?watch=1&resourceVersion=${list.metadata.resourceVersion}`)
  const lines = watch[Symbol.asyncIterator]()
  expect(String((await lines.next()).value)).toBe(' ')
  ;(await open(configMaps, { 'content-type': 'application/json' }, '{"metadata":{"name":"news"}}')).resume()
  let text = ''
  while (!text.includes('\n')) text += String((await lines.next()).value)
  expect(JSON.parse(text)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'news' } } })
  watch.destroy()
})
