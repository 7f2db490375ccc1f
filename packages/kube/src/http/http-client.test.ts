import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { ApiRequest } from '@corral/ports'
import { defineKind, type KubeObject } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ClusterAccess } from '../cluster-access.js'
import { createInformer } from '../informer.js'
import type { KubeClient } from '../kube-client.js'
import { kubeClientFromConfig } from '../kube-client-from-config.js'
import { MemoryHandler } from '../memory-handler.test-suite.js'
import { selfSigned } from '../self-signed.test-suite.js'

interface Thing extends KubeObject {
  spec?: { color: string }
}
const things = defineKind<Thing>('example.org/v1', 'Thing', 'things')
const thing = (name: string): Thing => ({ metadata: { name, namespace: 'ns' }, spec: { color: 'red' } })
const certificate = selfSigned()

type Answer = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void

/** A TLS server whose answers each test writes. */
async function startServer(port = 0) {
  let answer: Answer = (_, response) => response.end()
  const seen: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = []
  const server: Server = createServer({ ...certificate, keepAliveTimeout: 60_000 }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      const { method = '', url = '', headers } = request
      seen.push({ method, url, headers, body: body.toString('utf8') })
      answer(request, response, body)
    })
  })
  let connections = 0
  server.on('secureConnection', () => connections++)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    get connections() {
      return connections
    },
    answer(next: Answer) {
      answer = next
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}
const failure = (code: number, reason: string) => ({ kind: 'Status', apiVersion: 'v1', reason, message: 'no', code })

/** Serves the small in-memory API over the socket, streams included. */
const serveHandler =
  (handler: MemoryHandler): Answer =>
  async (request, response, bytes) => {
    const url = new URL(request.url ?? '/', 'https://host')
    const aborted = new AbortController()
    response.on('close', () => aborted.abort())
    const api: ApiRequest = {
      method: request.method ?? 'GET',
      path: url.pathname,
      query: url.searchParams,
      headers: {},
      signal: aborted.signal,
      ...(bytes.length > 0 ? { body: JSON.parse(bytes.toString()) } : {}),
    }
    if (url.searchParams.get('sendInitialEvents')) return json(response, 422, failure(422, 'Invalid'))
    const { status, body } = await handler.handle(api)
    if (body.type === 'object') return json(response, status, body.value)
    if (body.type !== 'watch') return void response.end()
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    for await (const frame of body.frames) {
      const line = frame.line()
      // In two pieces and after a blank: what a slow network and a keep-alive look like.
      response.write(' ')
      response.write(line.slice(0, 7))
      response.write(line.slice(7))
    }
    response.end()
  }

let server: Awaited<ReturnType<typeof startServer>>
let client: KubeClient
const access = (port: number, changes: Partial<ClusterAccess> = {}): ClusterAccess => ({
  server: new URL(`https://127.0.0.1:${port}`),
  namespace: 'ns',
  tls: { ca: certificate.cert, rejectUnauthorized: true },
  credentials: async () => ({ authorization: 'Bearer one' }),
  origin: 'test',
  ...changes,
})
beforeEach(async () => {
  server = await startServer()
  client = kubeClientFromConfig(access(server.port))
})
afterEach(async () => {
  await client.close()
  await server.close()
})

describe('a client over TLS', () => {
  const path = '/apis/example.org/v1/namespaces/ns/things'
  const ref = { name: 'a', namespace: 'ns' }
  it.each<{ verb: string; call: () => unknown; sends: string; type?: string; body?: object }>([
    { verb: 'get', call: () => client.get(things, ref), sends: `GET ${path}/a` },
    { verb: 'get in the default namespace', call: () => client.get(things, { name: 'a' }), sends: `GET ${path}/a` },
    { verb: 'a strange name', call: () => client.get(things, { name: 'a/b c' }), sends: `GET ${path}/a%2Fb%20c` },
    { verb: 'list in all namespaces', call: () => client.list(things), sends: 'GET /apis/example.org/v1/things' },
    {
      verb: 'list with selectors',
      call: () => client.list(things, { namespace: 'ns', labelSelector: 'a in (b,c)', limit: 5 }),
      sends: `GET ${path}?labelSelector=a+in+%28b%2Cc%29&limit=5`,
    },
    {
      verb: 'create',
      call: () => client.create(things, thing('a'), { dryRun: true, fieldManager: 'me', fieldValidation: 'Strict' }),
      sends: `POST ${path}?fieldManager=me&fieldValidation=Strict&dryRun=All`,
      type: 'application/json',
      body: { apiVersion: 'example.org/v1', kind: 'Thing', ...thing('a') },
    },
    { verb: 'update', call: () => client.update(things, thing('a')), sends: `PUT ${path}/a`, type: 'application/json' },
    { verb: 'updateStatus', call: () => client.updateStatus(things, thing('a')), sends: `PUT ${path}/a/status` },
    {
      verb: 'merge patch of a sub-resource',
      call: () => client.patch(things, ref, { type: 'merge', body: { x: 1 } }, { subresource: 'status' }),
      sends: `PATCH ${path}/a/status`,
      type: 'application/merge-patch+json',
      body: { x: 1 },
    },
    {
      verb: 'JSON patch',
      call: () => client.patch(things, ref, { type: 'json', body: [{ op: 'remove', path: '/x' }] }),
      sends: `PATCH ${path}/a`,
      type: 'application/json-patch+json',
      body: [{ op: 'remove', path: '/x' }],
    },
    {
      verb: 'strategic patch',
      call: () => client.patch(things, ref, { type: 'strategic', body: {} }),
      sends: `PATCH ${path}/a`,
      type: 'application/strategic-merge-patch+json',
    },
    {
      verb: 'apply',
      call: () => client.apply(things, thing('a'), { force: true }),
      sends: `PATCH ${path}/a?fieldManager=corral&force=true`,
      type: 'application/apply-patch+yaml',
    },
    { verb: 'delete', call: () => client.delete(things, ref), sends: `DELETE ${path}/a` },
    {
      verb: 'delete with options',
      call: () => client.delete(things, ref, { gracePeriodSeconds: 0, preconditions: { uid: 'u' } }),
      sends: `DELETE ${path}/a`,
      body: { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, preconditions: { uid: 'u' } },
    },
    {
      verb: 'deleteCollection',
      call: () => client.deleteCollection(things, { namespace: 'ns', labelSelector: 'a=b' }),
      sends: `DELETE ${path}?labelSelector=a%3Db`,
    },
    {
      verb: 'scale',
      call: () => client.scale(things, ref, 3),
      sends: `PATCH ${path}/a/scale`,
      body: { spec: { replicas: 3 } },
    },
    { verb: 'raw', call: () => client.raw('/version?timeout=32s'), sends: 'GET /version?timeout=32s' },
  ])('sends $verb as the API wants it', async ({ call, sends, type, body }) => {
    server.answer((_, response) => json(response, 200, { metadata: {}, items: [] }))
    await call()
    const sent = server.seen[0]
    expect(`${sent?.method} ${sent?.url}`).toBe(sends)
    expect(sent?.headers.authorization).toBe('Bearer one')
    if (type) expect(sent?.headers['content-type']).toBe(type)
    if (body) expect(JSON.parse(sent?.body ?? '')).toEqual(body)
  })

  it('gives items of a list the kind the server leaves out', async () => {
    server.answer((_, response) => json(response, 200, { metadata: {}, items: [{ metadata: { name: 'a' } }] }))
    const { items } = await client.list(things)
    expect(items[0]).toMatchObject({ apiVersion: 'example.org/v1', kind: 'Thing' })
  })

  it('fetches all pages of a list, one after the other', async () => {
    server.answer((request, response) => {
      const token = new URL(request.url ?? '', 'https://host').searchParams.get('continue')
      const page = token ? { items: [{ metadata: { name: 'b' } }] } : { items: [{ metadata: { name: 'a' } }] }
      json(response, 200, { ...page, metadata: token ? {} : { continue: 'next' } })
    })
    const names: (string | undefined)[] = []
    for await (const item of client.items(things, { limit: 1 })) names.push(item.metadata.name)
    expect(names).toEqual(['a', 'b'])
  })

  it.each([
    { when: 'the object is missing', status: 404, body: failure(404, 'NotFound'), code: 'NotFound' },
    { when: 'somebody was quicker', status: 409, body: failure(409, 'Conflict'), code: 'Conflict' },
    { when: 'it exists already', status: 409, body: failure(409, 'AlreadyExists'), code: 'AlreadyExists' },
    { when: 'a proxy answers in its own words', status: 502, body: 'bad gateway', code: 'InternalError' },
  ])("throws the server's reason as code when $when", async ({ status, body, code }) => {
    server.answer((_, response) => json(response, status, body))
    await expect(client.create(things, thing('a'))).rejects.toMatchObject({ code, status })
  })

  it("keeps the server's own words beside the call they answer", async () => {
    server.answer((_, response) => json(response, 409, failure(409, 'Conflict')))
    const error = await client.create(things, thing('a')).catch((thrown) => thrown)
    expect([error.serverMessage, error.message]).toEqual(['no', 'create things in namespace ns: no'])
  })

  it('finds nothing where get throws', async () => {
    server.answer((_, response) => json(response, 404, failure(404, 'NotFound')))
    expect(await client.find(things, { name: 'a' })).toBeUndefined()
  })

  it('reads again when the server is busy or the connection breaks', async () => {
    const answers: Answer[] = [
      (_, response) => json(response, 429, failure(429, 'TooManyRequests'), { 'retry-after': '0' }),
      (_, response) => json(response, 503, failure(503, 'ServiceUnavailable')),
      (request) => request.socket.destroy(),
      (_, response) => json(response, 200, thing('a')),
    ]
    server.answer((...exchange) => answers[server.seen.length - 1]?.(...exchange))
    expect(await client.get(things, { name: 'a' })).toMatchObject({ kind: 'Thing' })
    expect(server.seen).toHaveLength(4)
  })

  it('never sends a write twice', async () => {
    server.answer((request) => request.socket.destroy())
    await expect(client.create(things, thing('a'))).rejects.toMatchObject({ code: 'ConnectionLost' })
    server.answer((_, response) => json(response, 503, failure(503, 'ServiceUnavailable')))
    await expect(client.create(things, thing('a'))).rejects.toMatchObject({ code: 'ServiceUnavailable' })
    expect(server.seen).toHaveLength(2)
  })

  it('gives up at the deadline and when aborted', async () => {
    server.answer(() => {})
    await expect(client.get(things, { name: 'a' }, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'Timeout' })
    const abort = new AbortController()
    const call = client.get(things, { name: 'a' }, { signal: abort.signal })
    abort.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
  })

  it('asks for new credentials once when they are refused', async () => {
    await client.close()
    let token = 'stale'
    client = kubeClientFromConfig(
      access(server.port, {
        async credentials({ refused = false } = {}) {
          if (refused) token = 'fresh'
          return { authorization: `Bearer ${token}` }
        },
      }),
    )
    server.answer((request, response) => {
      const isFresh = request.headers.authorization === 'Bearer fresh'
      json(response, isFresh ? 201 : 401, isFresh ? thing('a') : failure(401, 'Unauthorized'))
    })
    await client.create(things, thing('a'))
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual(['Bearer stale', 'Bearer fresh'])
  })

  it('refuses a server it has no reason to trust', async () => {
    await client.close()
    client = kubeClientFromConfig(access(server.port, { tls: { rejectUnauthorized: true } }))
    await expect(client.get(things, { name: 'a' })).rejects.toMatchObject({
      code: 'CertificateInvalid',
      message: expect.stringMatching(
        /^\S+ .*: the certificate of the server https:\/\/127\.0\.0\.1:\d+ is not trusted: /,
      ),
    })
  })

  it('uses few connections for many calls', async () => {
    await client.close()
    client = kubeClientFromConfig(access(server.port), { connections: 3 })
    server.answer((_, response) => json(response, 200, thing('a')))
    await Promise.all(Array.from({ length: 60 }, () => client.get(things, { name: 'a' })))
    expect(server.connections).toBeLessThanOrEqual(3)
  })
})

describe('a client that offers HTTP/2', () => {
  it('shares one connection where the server agrees', async () => {
    const sessions = new Set<unknown>()
    const modern = createSecureServer(certificate, (request, response) => {
      sessions.add(request.stream.session)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(thing(request.url.split('/').at(-1) ?? '')))
    })
    await new Promise<void>((resolve) => modern.listen(0, '127.0.0.1', resolve))
    const { port } = modern.address() as AddressInfo
    const both = kubeClientFromConfig(access(port), { allowH2: true, connections: 1 })
    try {
      const names = ['a', 'b', 'c', 'd']
      const found = await Promise.all(names.map((name) => both.get(things, { name })))
      expect(found.map((object) => object.metadata.name)).toEqual(names)
      expect(sessions.size).toBe(1)
    } finally {
      await both.close()
      await new Promise((resolve) => modern.close(resolve))
    }
  })

  it('goes on working after a delete with preconditions', async () => {
    const bodies: string[] = []
    const modern = createSecureServer({ ...certificate, allowHTTP1: true }, (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        if (chunks.length > 0) bodies.push(Buffer.concat(chunks).toString())
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify(thing('a')))
      })
    })
    await new Promise<void>((resolve) => modern.listen(0, '127.0.0.1', resolve))
    const { port } = modern.address() as AddressInfo
    const both = kubeClientFromConfig(access(port), { allowH2: true, connections: 1 })
    try {
      await both.get(things, { name: 'a' })
      await both.delete(things, { name: 'a' }, { preconditions: { uid: 'u' }, timeoutMs: 5_000 })
      expect(bodies.map((body) => JSON.parse(body).preconditions)).toEqual([{ uid: 'u' }])
      await expect(both.get(things, { name: 'a' }, { timeoutMs: 5_000 })).resolves.toBeDefined()
    } finally {
      await both.close()
      await new Promise((resolve) => modern.close(resolve))
    }
  })

  it('speaks HTTP/1.1 where it does not', async () => {
    await client.close()
    client = kubeClientFromConfig(access(server.port), { allowH2: true })
    server.answer((_, response) => json(response, 200, thing('a')))
    expect((await client.get(things, { name: 'a' })).metadata.name).toBe('a')
  })
})

describe('a watch over TLS', () => {
  it('misses nothing and repeats nothing over a restart of the server', async () => {
    const handler = new MemoryHandler()
    server.answer((...exchange) => void serveHandler(handler)(...exchange))
    const informer = createInformer({ client, kind: things })
    const seen: string[] = []
    informer.subscribe({
      add: (object) => seen.push(`+${object.metadata.name}`),
      delete: (object) => seen.push(`-${object.metadata.name}`),
    })
    try {
      await informer.hasSynced
      await client.create(things, thing('a'))
      await expect.poll(() => seen).toEqual(['+a'])

      const { port } = server
      await server.close()
      handler.put('/apis/example.org/v1/namespaces/ns/things', { ...thing('b'), kind: 'Thing' }, true)
      handler.remove('/apis/example.org/v1/namespaces/ns/things/a')
      server = await startServer(port)
      server.answer((...exchange) => void serveHandler(handler)(...exchange))
      await expect.poll(() => seen).toEqual(['+a', '+b', '-a'])
      // Resumed from where it stood: no second list.
      expect(server.seen.every(({ url }) => url.includes('watch=true'))).toBe(true)
    } finally {
      await informer.stop()
    }
  })

  it('begins behind the given version and ends with its signal', async () => {
    const handler = new MemoryHandler()
    server.answer((...exchange) => void serveHandler(handler)(...exchange))
    const first = await client.create(things, thing('a'))
    await client.create(things, thing('b'))
    const abort = new AbortController()
    const names: (string | undefined)[] = []
    const { resourceVersion } = first.metadata
    for await (const event of client.watch(things, { resourceVersion, signal: abort.signal })) {
      names.push(event.object.metadata.name)
      abort.abort()
    }
    expect(names).toEqual(['b'])
    await expect.poll(() => handler.watchers).toBe(0)
  })

  it('throws when the server can never accept the request', async () => {
    server.answer((_, response) => json(response, 400, failure(400, 'BadRequest')))
    const watching = client.watch(things, { resourceVersion: '1', labelSelector: '???' })
    await expect(watching[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'BadRequest' })
  })
})

describe('logs', () => {
  it('stream as they come', async () => {
    server.answer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      response.write('one\n')
      setImmediate(() => response.end('two\n'))
    })
    const chunks: Uint8Array[] = []
    for await (const chunk of client.logs({ name: 'p' }, { container: 'c', follow: true })) chunks.push(chunk)
    expect(Buffer.concat(chunks).toString()).toBe('one\ntwo\n')
    expect(server.seen[0]?.url).toBe('/api/v1/namespaces/ns/pods/p/log?container=c&follow=true')
  })
})

describe('exec over TLS', () => {
  it("rejects with the server's words when the upgrade is refused", async () => {
    server.answer((_, response) => json(response, 400, failure(400, 'BadRequest')))
    await expect(client.exec({ name: 'p' }, { command: ['ls'] })).rejects.toMatchObject({ code: 'BadRequest' })
  })
})
