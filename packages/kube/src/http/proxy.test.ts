import { createServer as createProxy, type IncomingMessage, type Server as ProxyServer } from 'node:http'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { defineKind, errorCode, type KubeObject } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ClusterAccess } from '../cluster-access.js'
import { kubeClientFromConfig } from '../kube-client-from-config.js'
import { selfSigned } from '../self-signed.test-suite.js'
import { StreamConnections } from '../stream/stream-connections.js'
import { connectionError } from './connection-error.js'

const things = defineKind<KubeObject>('example.org/v1', 'Thing', 'things')
const certificate = selfSigned()
const listening = async (server: Server | ProxyServer): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

describe('through an HTTP proxy', () => {
  let server: Server
  let proxy: ProxyServer
  let access: ClusterAccess
  let asked: string[]
  let seen: IncomingMessage['headers'][]
  let isOpen = true

  beforeEach(async () => {
    asked = []
    seen = []
    isOpen = true
    server = createServer(certificate, (request, response) => {
      seen.push(request.headers)
      response.writeHead(200, { 'content-type': 'application/json' })
      const object = { apiVersion: 'example.org/v1', kind: 'Thing', metadata: { name: 'one', resourceVersion: '5' } }
      if (!request.url?.includes('watch=')) return void response.end(JSON.stringify(object))
      response.write(`${JSON.stringify({ type: 'ADDED', object })}\n`)
    })
    const port = await listening(server)
    proxy = createProxy()
    proxy.on('connect', (request, socket, head) => {
      asked.push(`${request.url} ${request.headers['proxy-authorization']}`)
      if (!isOpen) return void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
      const upstream = connect(port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
        upstream.write(head)
        upstream.pipe(socket).pipe(upstream)
      })
      for (const end of [upstream, socket]) end.on('error', () => {})
    })
    access = {
      server: new URL(`https://localhost:${port}`),
      proxy: new URL(`http://user:pass%21@127.0.0.1:${await listening(proxy)}`),
      namespace: 'default',
      tls: { ca: certificate.cert, rejectUnauthorized: true },
      credentials: async () => ({
        authorization: 'Bearer t',
        impersonation: { 'impersonate-user': 'jane', 'impersonate-group': ['a', 'b'] },
      }),
      origin: 'test',
    }
  })
  afterEach(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    proxy.closeAllConnections()
    await new Promise((resolve) => proxy.close(resolve))
  })
  const tunnel = () => `localhost:${access.server.port} Basic ${Buffer.from('user:pass!').toString('base64')}`

  it('calls and watches reach the server, with who they act for', async () => {
    const client = kubeClientFromConfig(access, { allowH2: true })
    try {
      expect((await client.get(things, { name: 'one' })).metadata?.name).toBe('one')
      for await (const event of client.watch(things, { resourceVersion: '1' })) {
        expect(event.type).toBe('ADDED')
        break
      }
    } finally {
      await client.close()
    }
    expect(new Set(asked)).toEqual(new Set([tunnel()]))
    expect(seen[0]).toMatchObject({ 'impersonate-user': 'jane', 'impersonate-group': 'a, b' })
  })

  it('a connection for a stream reaches the server', async () => {
    const socket = new StreamConnections(access).take({})
    socket.write('GET /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    expect(text).toMatch(/^HTTP\/1\.1 200/)
    expect(asked).toEqual([tunnel()])
  })

  it('what the proxy refuses is a lost connection that says so', async () => {
    isOpen = false
    const client = kubeClientFromConfig(access)
    const failed = client.create(things, { metadata: { name: 'one', namespace: 'default' } })
    await expect(failed).rejects.toMatchObject({ code: 'ConnectionLost', message: expect.stringContaining('407') })
    await client.close()
  })
})

describe('an error below HTTP', () => {
  const withCode = (code: string, error = new Error('no')) => Object.assign(error, { code })
  it.each<{ error: Error; code: string | undefined; why: string }>([
    { error: withCode('ECONNRESET'), code: 'ConnectionLost', why: 'the peer hung up' },
    { error: withCode('UND_ERR_SOCKET'), code: 'ConnectionLost', why: 'undici lost the socket' },
    { error: withCode('ETIMEDOUT'), code: 'Timeout', why: 'nobody answered' },
    {
      error: withCode('DEPTH_ZERO_SELF_SIGNED_CERT'),
      code: 'CertificateInvalid',
      why: 'the certificate is not trusted',
    },
  ])('is $code when $why', ({ error, code }) => {
    expect(errorCode(connectionError(error, 'GET /x'))).toBe(code)
  })

  it.each([
    new TypeError('cannot read properties of undefined'),
    new RangeError('out of range'),
    withCode('UND_ERR_INVALID_ARG', new TypeError('invalid header')),
    withCode('ERR_INVALID_CHAR', new TypeError('invalid character in header')),
  ])('that is a mistake of the program passes as it is: %s', (error) => {
    expect(connectionError(error, 'GET /x')).toBe(error)
  })
})
