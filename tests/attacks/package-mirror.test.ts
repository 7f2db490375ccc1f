import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { guardedFetch } from '../../packages/mirror/src/guarded-fetch.js'
import { scriptedRegistry, startMirror } from '../../packages/mirror/src/mirror-under-test.test-suite.js'
import { mayReach } from '../../packages/node/src/cradle/network/reachable-address.js'

type Registry = Awaited<ReturnType<typeof scriptedRegistry>>

/** A sandbox speaks to the mirror as it likes: no client of ours tidies the path up. */
async function raw(base: string, path: string): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(base)
  const socket = connect(Number(port), hostname)
  socket.write(`GET ${path} HTTP/1.1\r\nhost: mirror\r\nconnection: close\r\n\r\n`)
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await once(socket, 'close')
  return { status: Number(text.split(' ')[1]), body: text.split('\r\n\r\n').slice(1).join('\r\n\r\n') }
}

describe('a path that leads out of the registry, whose host is sent the credentials of the platform', () => {
  let registry: Registry
  let mirror: Awaited<ReturnType<typeof startMirror>>
  beforeAll(async () => {
    registry = await scriptedRegistry(() => ({ body: '{}' }))
    mirror = await startMirror({
      upstream: () => [
        {
          url: new URL(`${registry.url}/team/repository/`),
          authorization: 'Bearer registry-secret',
          download: `${registry.url}/team/repository/{crate}/{version}/download`,
        },
      ],
    })
  })
  afterAll(async () => {
    await mirror[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
  })

  it.each([
    { how: 'as the name of a package', path: '/npm/../secrets' },
    { how: 'twice, as name and version', path: '/npm/../..' },
    { how: 'as a package of a scope', path: '/npm/@scope/../-/secret.tgz' },
    { how: 'behind an encoded slash, which registries decode', path: '/npm/@scope%2f..' },
    { how: 'with encoded dots in a module', path: '/go/%2e%2e/%2e%2e/secrets/@v/list' },
    {
      how: 'with encoded dots in a look-up of the checksum database',
      path: '/go/sumdb/x/lookup/%2e%2e/%2E%2e/%2e%2e/api/users',
    },
    {
      how: 'with backslashes, which address parsers take for slashes',
      path: '/go/sumdb/x/lookup/..\\..\\..\\..\\api\\users',
    },
    { how: 'as the version of a crate', path: `/crates/crate/serde/../${'0'.repeat(64)}` },
  ])('is refused $how', async ({ path }) => {
    registry.asked.length = 0
    const { status, body } = await raw(mirror.url, path)
    expect({ status, body, asked: registry.asked.map(({ url }) => url) }).toEqual({
      status: 404,
      body: `the package mirror knows no ${path}\n`,
      asked: [],
    })
  })

  it.each([
    { what: 'a package', path: '/npm/@scope%2fname', asks: '/team/repository/@scope%2fname' },
    { what: 'a module', path: '/go/example.com/m/@v/list', asks: '/team/repository/example.com/m/@v/list' },
    { what: 'a checksum', path: '/go/sumdb/x/lookup/m@v1.0.0', asks: '/team/repository/sumdb/x/lookup/m@v1.0.0' },
  ])('but $what is asked for, with the credentials', async ({ path, asks }) => {
    registry.asked.length = 0
    expect((await raw(mirror.url, path)).status).toBe(200)
    expect(registry.asked.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      [asks, 'Bearer registry-secret'],
    ])
  })
})

describe('a package whose files are said to lie on this machine', () => {
  const sayTo = (target: () => string) => async (): Promise<{ status: number; body: string }> => {
    await using inside = await scriptedRegistry(() => ({ body: 'metadata of the machine' }))
    let address = target().replace('PORT', new URL(inside.url).port)
    await using registry = await scriptedRegistry(({ url }) =>
      url?.includes('latest')
        ? { body: 'metadata of the registry' }
        : url?.includes('redirected')
          ? { status: 302, headers: { location: address } }
          : { headers: { 'content-type': 'text/html' }, body: `<a href="${address}">x</a>` },
    )
    address = address.replace('REGISTRY', new URL(registry.url).port)
    await using mirror = await startMirror({
      upstream: () => [{ url: new URL(`${registry.url}/`) }],
      mayReach,
    })
    const html = (await raw(mirror.url, '/pypi/simple/evil/')).body
    const link = /href="([^"]+)"/.exec(html)?.[1] ?? ''
    const direct = await raw(mirror.url, new URL(link).pathname)
    const redirected = await raw(mirror.url, '/npm/redirected/-/redirected-1.0.0.tgz')
    expect(redirected.status).toBe(direct.status)
    return direct
  }

  it.each([
    { address: 'http://localhost:PORT/latest/meta-data' },
    { address: 'http://[::1]:PORT/latest/meta-data' },
    { address: 'http://0.0.0.0:PORT/latest/meta-data' },
    { address: 'http://2130706434:PORT/latest/meta-data' },
    { address: 'http://169.254.169.254/latest/meta-data' },
    { address: 'http://127.0.0.1:PORT/latest/meta-data' },
    { address: 'ftp://localhost:PORT/latest/meta-data' },
  ])('is not fetched from $address, as a link or by a redirect', async ({ address }) => {
    const { status, body } = await sayTo(() => address)()
    expect(status).toBe(502)
    expect(body).toMatch(/it leads to (\S+, which is this machine or in a private network|ftp: addresses)/)
  })

  it('but it is where the registry itself is there, on the port of the registry', async () => {
    expect(await sayTo(() => 'http://127.0.0.1:REGISTRY/latest/meta-data')()).toEqual({
      status: 200,
      body: 'metadata of the registry',
    })
  })
})

it('a file without end is given up once downloads take as much as the cache may, and leaves nothing', async () => {
  await using registry = await scriptedRegistry(({ url }) => ({
    body: url?.includes('large') ? Buffer.alloc(3_000_000) : Buffer.alloc(500_000),
  }))
  await using mirror = await startMirror({
    upstream: () => [{ url: new URL(`${registry.url}/`) }],
    budgetBytes: 1_000_000,
  })
  const refused = await raw(mirror.url, '/npm/large/-/large-1.0.0.tgz')
  expect(refused.status).toBe(502)
  expect(refused.body).toContain('does not fit: downloads under way take more than 1000000 bytes')
  expect(mirror.cache.usedBytes).toBe(0)
  // The control: what fits is kept, also after the one that did not.
  expect((await raw(mirror.url, '/npm/small/-/small-1.0.0.tgz')).status).toBe(200)
  expect(mirror.cache.usedBytes).toBe(500_000)
})

async function serve(listener: RequestListener) {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

describe('a sandbox that asks for more indexes than the platform has memory for', () => {
  it('gets them all, 64 at a time, and files meanwhile', async () => {
    const open = new Set<ServerResponse>()
    let mostOpen = 0
    let isReleased = false
    let onSixtyFour = (): void => {}
    const sixtyFour = new Promise<void>((resolve) => {
      onSixtyFour = resolve
    })
    await using registry = await serve((request, response) => {
      if (request.url?.endsWith('.tgz') || isReleased) return void response.end('{}')
      open.add(response)
      mostOpen = Math.max(mostOpen, open.size)
      if (open.size >= 64) onSixtyFour()
    })
    await using mirror = await startMirror({ upstream: () => [{ url: new URL(registry.url) }] })
    const asked = Array.from({ length: 150 }, (_, index) => raw(mirror.url, `/npm/package-${index}`))
    await sixtyFour
    expect((await raw(mirror.url, '/npm/other/-/other-1.0.0.tgz')).status).toBe(200)
    isReleased = true
    for (const response of open) response.end('{}')
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]))
    expect(mostOpen).toBe(64)
  })

  it('gets large ones one after the other', async () => {
    const size = 24 * 1024 * 1024
    const farAt = 18 * 1024 * 1024
    let far = 0
    let mostFar = 0
    await using registry = await serve((request, response) => {
      if (request.url === '/small') return void response.end('{"name":"small"}')
      const chunk = Buffer.alloc(256 * 1024, ' ')
      let sent = 2
      response.writeHead(200, { 'content-length': size })
      response.write('{}')
      const more = (): void => {
        while (sent < size) {
          const piece = chunk.subarray(0, size - sent)
          const isFar = sent < farAt && sent + piece.length >= farAt
          sent += piece.length
          if (isFar) far += 1
          mostFar = Math.max(mostFar, far)
          if (!response.write(piece)) return void response.once('drain', more)
        }
        response.end(() => {
          far -= 1
        })
      }
      more()
    })
    await using mirror = await startMirror({ upstream: () => [{ url: new URL(registry.url) }] })
    const large = Array.from({ length: 6 }, (_, index) => raw(mirror.url, `/npm/large-${index}`))
    expect(await raw(mirror.url, '/npm/small')).toMatchObject({ status: 200, body: '{"name":"small"}' })
    expect((await Promise.all(large)).map(({ status, body }) => [status, body])).toEqual(large.map(() => [200, '{}']))
    expect(mostFar).toBe(1)
  })
})

it('a host that stops in the middle of a file is given up, so that the next who asks does not wait for ever', async () => {
  await using host = await serve((request, response) => {
    response.writeHead(200, { 'content-length': 10 })
    response.write('01234')
    if (request.url === '/whole') response.end('56789')
  })
  const rules = { registryHosts: async () => new Set<string>(), knownRegistryHosts: () => new Set<string>() }
  const fetchFrom = guardedFetch({ ...rules, mayReach: () => true }, fetch, 200)
  const init = { headers: {}, signal: new AbortController().signal }
  const text = async (path: string): Promise<string> => (await fetchFrom(new URL(path, host.url), init)).text()
  await expect(text('/part')).rejects.toThrow('sent nothing for 0.2 s')
  expect(await text('/whole')).toBe('0123456789')
})
