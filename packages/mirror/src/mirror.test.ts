import { randomBytes } from 'node:crypto'
import { readdirSync, truncateSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { scriptedRegistry, startMirror } from './mirror-under-test.test-suite.js'

const tarball = '/npm/left/-/left-1.0.0.tgz'
const get = (url: string, init?: RequestInit): Promise<Response> => fetch(url, { redirect: 'manual', ...init })

describe('the package mirror', () => {
  it('fetches an artifact once and serves it from the disk afterwards, also after a restart', async () => {
    await using registry = await scriptedRegistry(() => ({ body: 'bytes of the tarball' }))
    const upstream = () => [{ url: new URL(`${registry.url}/`) }]
    await using mirror = await startMirror({ upstream })
    for (let time = 0; time < 3; time += 1)
      expect(await (await get(mirror.url + tarball)).text()).toBe('bytes of the tarball')
    await using restarted = await startMirror({ upstream, directory: mirror.directory })
    expect(await (await get(restarted.url + tarball)).text()).toBe('bytes of the tarball')
    expect(registry.asked.map(({ url }) => url)).toEqual(['/left/-/left-1.0.0.tgz'])
  })

  it.each(['/left/-/left-1.0.0.tgz', '/@acme/left/-/left-1.0.0.tgz', '/npm/-/npm-1.0.0.tgz'])(
    'a lock file that names the public registry is installed from: npm asks for %s',
    async (path) => {
      await using registry = await scriptedRegistry(({ url }) => ({ body: `bytes of ${url}` }))
      await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${registry.url}/`) }] })
      expect(await (await get(mirror.url + path)).text()).toBe(`bytes of ${path}`)
    },
  )

  it('npm does not wait until the other package clients of the machine have told their registries', async () => {
    await using registry = await scriptedRegistry(() => ({ body: 'bytes of the tarball' }))
    const never = new Promise<undefined>(() => undefined)
    await using mirror = await startMirror({
      upstream: (name) => (name === 'npm' ? [{ url: new URL(`${registry.url}/`) }] : never),
    })
    expect(await (await get(mirror.url + tarball)).text()).toBe('bytes of the tarball')
  })

  it.each([{ bytes: 1 }, { bytes: 256 * 1024 }, { bytes: 256 * 1024 + 1 }, { bytes: 2_000_000 }])(
    'serves $bytes bytes as they are, read whole or streamed',
    async ({ bytes }) => {
      const body = randomBytes(bytes)
      await using registry = await scriptedRegistry(() => ({ body }))
      await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${registry.url}/`) }] })
      for (let time = 0; time < 2; time += 1) {
        const answer = await get(mirror.url + tarball)
        expect(answer.headers.get('content-length')).toBe(String(bytes))
        expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true)
      }
    },
  )

  it('answers with an error, not with half a package, where the disk has lost some of it', async () => {
    await using registry = await scriptedRegistry(() => ({ body: 'bytes of the tarball' }))
    await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${registry.url}/`) }] })
    await (await get(mirror.url + tarball)).text()
    const [body = ''] = readdirSync(mirror.directory).filter((name) => name.endsWith('.body'))
    truncateSync(join(mirror.directory, body), 5)
    const answer = await get(mirror.url + tarball)
    expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining('lost some of its content')])
  })

  it('asks once for what twenty clients want at the same time', async () => {
    await using registry = await scriptedRegistry(() => ({ body: 'x'.repeat(100_000) }))
    await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${registry.url}/`) }] })
    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => (await (await get(mirror.url + tarball)).text()).length),
    )
    expect(answers).toEqual(Array.from({ length: 20 }, () => 100_000))
    expect(registry.asked).toHaveLength(1)
  })

  it('fetches fifteen packages at once without a MaxListenersExceededWarning in the log', async () => {
    await using registry = await scriptedRegistry(() => ({ body: 'x'.repeat(500_000) }))
    await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${registry.url}/`) }] })
    const warnings: string[] = []
    const onWarning = (warning: Error): void => void warnings.push(warning.name)
    process.on('warning', onWarning)
    try {
      const paths = Array.from({ length: 15 }, (_, index) => `/npm/left/-/left-1.0.${index}.tgz`)
      await Promise.all(paths.map(async (path) => (await get(mirror.url + path)).arrayBuffer()))
    } finally {
      process.off('warning', onWarning)
    }
    expect(registry.asked).toHaveLength(15)
    expect(warnings).toEqual([])
  })

  it('asks again for an index with its etag, and goes on with the last one while the registry is away', async () => {
    let mode: 'first' | 'unchanged' | 'away' = 'first'
    await using registry = await scriptedRegistry(() => {
      if (mode === 'away') return { status: 503, body: 'away' }
      return mode === 'unchanged' ? { status: 304 } : { headers: { etag: '"1"' }, body: '{"name":"left"}' }
    })
    await using mirror = await startMirror({
      upstream: () => [{ url: new URL(`${registry.url}/`) }],
      indexFreshMs: 0,
    })
    for (const next of ['first', 'unchanged', 'away'] as const) {
      mode = next
      const answer = await get(`${mirror.url}/npm/left`)
      expect({ next, status: answer.status, body: await answer.text() }).toEqual({
        next,
        status: 200,
        body: '{"name":"left"}',
      })
    }
    expect(registry.asked.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '"1"', '"1"'])
  })

  it('keeps nothing of a download that ended early', async () => {
    let isCut = true
    await using registry = await scriptedRegistry(() => ({ body: 'whole', cut: isCut }))
    await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${registry.url}/`) }] })
    expect((await get(mirror.url + tarball)).status).toBe(502)
    expect(mirror.cache.usedBytes).toBe(0)
    isCut = false
    expect(await (await get(mirror.url + tarball)).text()).toBe('whole')
  })

  it('sends credentials to the registry and not to the host it redirects to', async () => {
    await using files = await scriptedRegistry(() => ({ body: 'file' }))
    await using registry = await scriptedRegistry(() => ({ status: 302, headers: { location: `${files.url}/f` } }))
    await using mirror = await startMirror({
      upstream: () => [{ url: new URL(`${registry.url}/`), authorization: 'Bearer secret' }],
    })
    expect(await (await get(mirror.url + tarball)).text()).toBe('file')
    expect(registry.asked.map(({ headers }) => headers.authorization)).toEqual(['Bearer secret'])
    expect(files.asked.map(({ headers }) => headers.authorization)).toEqual([undefined])
  })

  it.each<[string, { range: string; status: number; body: string; contentRange: string | null }]>([
    ['the first bytes', { range: 'bytes=0-2', status: 206, body: '012', contentRange: 'bytes 0-2/10' }],
    ['the last bytes', { range: 'bytes=-3', status: 206, body: '789', contentRange: 'bytes 7-9/10' }],
    ['everything from a place', { range: 'bytes=8-', status: 206, body: '89', contentRange: 'bytes 8-9/10' }],
    ['a place behind the end', { range: 'bytes=10-', status: 416, body: '', contentRange: 'bytes */10' }],
    [
      'several ranges, which gives all',
      { range: 'bytes=0-1,3-4', status: 200, body: '0123456789', contentRange: null },
    ],
  ])('answers a request for %s', async (_, { range, status, body, contentRange }) => {
    await using registry = await scriptedRegistry(() => ({ body: '0123456789' }))
    await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${registry.url}/`) }] })
    const answer = await get(mirror.url + tarball, { headers: { range } })
    expect([answer.status, await answer.text(), answer.headers.get('content-range')]).toEqual([
      status,
      body,
      contentRange,
    ])
  })

  it.each<[string, { method?: string; path: string; status: number; says: string }]>([
    ['writing', { method: 'PUT', path: '/npm/left', status: 405, says: 'only reads: PUT' }],
    ['a path of no registry', { path: '/etc/passwd', status: 404, says: 'knows no /etc/passwd' }],
    ['an ecosystem without a registry', { path: '/pypi/simple/x/', status: 404, says: 'no pypi registry' }],
    [
      'a file link without our mark',
      { path: `/files/${'a'.repeat(22)}/${b64('http://127.0.0.1:1/x')}/x`, status: 404, says: 'knows no /files' },
    ],
    ['a module path that climbs', { path: '/go/a/../../b/@v/list', status: 404, says: 'knows no' }],
    ['what the registry does not have', { path: '/npm/missing', status: 404, says: 'answered 404' }],
  ])('refuses %s', async (_, { method = 'GET', path, status, says }) => {
    await using registry = await scriptedRegistry(() => ({ status: 404 }))
    await using mirror = await startMirror({
      upstream: (name) => (name === 'pypi' ? undefined : [{ url: new URL(`${registry.url}/`) }]),
    })
    const answer = await get(`${mirror.url}${path}`, { method })
    expect(answer.status).toBe(status)
    expect(await answer.text()).toContain(says)
  })

  it('asks the next Go proxy only where the first does not have the module, or where a bar says so', async () => {
    await using second = await scriptedRegistry(() => ({ body: 'v1.0.0' }))
    for (const { status, fallsBackOnError, expected } of [
      { status: 404, fallsBackOnError: false, expected: 200 },
      { status: 500, fallsBackOnError: false, expected: 500 },
      { status: 500, fallsBackOnError: true, expected: 200 },
    ]) {
      await using first = await scriptedRegistry(() => ({ status }))
      await using mirror = await startMirror({
        upstream: () => [{ url: new URL(`${first.url}/`), fallsBackOnError }, { url: new URL(`${second.url}/`) }],
      })
      expect((await get(`${mirror.url}/go/example.com/m/@v/list`)).status).toBe(expected)
    }
  })

  it('rewrites links of an index to other hosts so that they work, metadata beside the file included', async () => {
    await using files = await scriptedRegistry(({ url }) => ({ body: `content of ${url}` }))
    await using index = await scriptedRegistry(() => ({
      headers: { 'content-type': 'text/html' },
      body: `<a href="${files.url}/p/a-1.0.whl#sha256=00" data-core-metadata="true">a</a>`,
    }))
    await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${index.url}/simple/`) }] })
    const html = await (await get(`${mirror.url}/pypi/simple/A_b/`)).text()
    expect(index.asked[0]?.url).toBe('/simple/a-b/')
    const link = /href="([^"#]+)#sha256=00"/.exec(html)?.[1] ?? ''
    expect(link).toMatch(new RegExp(`^${mirror.url}/files/.*/a-1\\.0\\.whl$`))
    expect(await (await get(link)).text()).toBe('content of /p/a-1.0.whl')
    expect(await (await get(`${link}.metadata`)).text()).toBe('content of /p/a-1.0.whl.metadata')
  })

  it('removes what was used least when the budget is spent', async () => {
    await using registry = await scriptedRegistry(() => ({ body: 'x'.repeat(400) }))
    await using mirror = await startMirror({
      upstream: () => [{ url: new URL(`${registry.url}/`) }],
      budgetBytes: 1_000,
    })
    const read = async (name: string) => (await get(`${mirror.url}/npm/${name}/-/${name}-1.0.0.tgz`)).arrayBuffer()
    for (const name of ['one', 'two', 'one', 'three', 'one']) await read(name)
    expect(registry.asked.map(({ url }) => url.slice(1, 4))).toEqual(['one', 'two', 'thr'])
    await read('two')
    expect(registry.asked).toHaveLength(4)
    expect(mirror.cache.usedBytes).toBe(800)
  })

  it('names the registry that cannot be reached', async () => {
    const gone = createServer()
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(gone.address() as { port: number }).port}`
    await new Promise((resolve) => gone.close(resolve))
    await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${url}/`) }] })
    const answer = await get(mirror.url + tarball)
    expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining(`${url} cannot be reached`)])
  })
})

function b64(text: string): string {
  return Buffer.from(text).toString('base64url')
}
