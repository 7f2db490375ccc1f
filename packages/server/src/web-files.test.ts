import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readWebFiles, webPages } from './web-files.js'

let directory: string
let app: Hono
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'corral-web-'))
  mkdirSync(join(directory, 'assets'))
  const files = {
    'index.html': 'page',
    'index.html.gz': 'page gz',
    'index.html.br': 'page br',
    'assets/m-1.js': 'code',
  }
  const more = {
    'assets/m-1.css': 'style',
    'assets/l-1.svg': 'logo',
    'assets/f-1.woff2': 'font',
    'assets/m-1.js.map': 'map',
  }
  for (const [name, content] of Object.entries({ ...files, ...more, 'assets/m-1.js.gz': 'code gz' }))
    writeFileSync(join(directory, name), content)
  const web = await readWebFiles(directory)
  app = new Hono()
  app.use(
    '*',
    webPages(web!, (host) => host.startsWith('localhost')),
  )
  app.get('/refused/:status', (context) =>
    context.json({ error: {} }, Number(context.req.param('status')) as 401, { 'content-encoding': 'gzip' }),
  )
  app.all('*', (context) => context.text('api'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const get = (path: string, headers: Record<string, string> = html, method = 'GET') =>
  Promise.resolve(app.request(`http://localhost${path}`, { method, headers }))
const textOf = async (path: string, headers?: Record<string, string>, method?: string) =>
  (await get(path, headers, method)).text()

describe('pages', () => {
  const pages = ['/', '/new', '/login', '/review', '/usage', '/sandboxes', '/projects', '/projects/p', '/pools/p']
  const more = ['/compare/g', '/settings', '/settings/agents', '/tasks/t', '/tasks/t/changes', '/tasks/t/terminal']
  it.each([...pages, ...more, '/tasks/t/details'])('%s is one', async (path) => {
    expect(await textOf(path)).toBe('page')
  })

  const none = [
    '/x',
    '/newer',
    '/login/x',
    '/reviews',
    '/usages',
    '/sandboxes/x',
    '/projects/p/x',
    '/projects/',
    '/pools',
  ]
  const others = [
    '/pools/p/x',
    '/compare',
    '/compare/g/x',
    '/settings/a/b',
    '/tasks',
    '/tasks/',
    '/tasks/t/events',
    '/x/new',
  ]
  it.each([...none, ...others, '/tasks/t/changes/x', '/tasks/t/x/changes'])('%s is none', async (path) => {
    expect(await textOf(path)).toBe('api')
  })

  it.each([
    { who: 'a program with the token', headers: { ...html, authorization: 'Bearer x' }, gets: 'api' },
    { who: 'a script', headers: { accept: 'application/json' }, gets: 'api' },
    { who: 'a program that would take HTML last', headers: { accept: 'application/json, text/html' }, gets: 'api' },
    { who: 'curl', headers: { accept: '*/*' }, gets: 'api' },
    { who: 'who says nothing', headers: {}, gets: 'api' },
    { who: 'an old browser', headers: { accept: ' application/xhtml+xml' }, gets: 'page' },
    { who: 'who takes brotli', headers: { ...html, 'accept-encoding': 'gzip, br' }, gets: 'page br' },
    { who: 'who takes gzip', headers: { ...html, 'accept-encoding': 'gzip' }, gets: 'page gz' },
  ])('are for browsers: $who gets "$gets"', async ({ headers, gets }) => {
    expect(await textOf('/', headers as Record<string, string>)).toBe(gets)
  })

  it.each([
    { what: 'a link to nothing', path: '/refused/404', headers: html, gets: [404, 'page'] },
    { what: 'a link without a session', path: '/refused/401', headers: html, gets: [401, 'page'] },
    { what: 'a broken server', path: '/refused/500', headers: html, gets: [500, '{"error":{}}'] },
    { what: 'a program', path: '/refused/404', headers: { accept: '*/*' }, gets: [404, '{"error":{}}'] },
    {
      what: 'a link under the name of another host',
      path: '/refused/404',
      headers: { ...html, host: 'evil.example' },
      gets: [404, '{"error":{}}'],
    },
  ])('$what is answered with $gets.0 and "$gets.1"', async ({ path, headers, gets }) => {
    const answer = await get(path, headers)
    expect([answer.status, await answer.text()]).toEqual(gets)
    expect(answer.headers.get('content-encoding')).toBe(gets[1] === 'page' ? null : 'gzip')
  })

  it('are not sent to another host, nor for another method', async () => {
    const other = await app.request('http://evil.example/', { headers: html })
    expect([other.status, await other.text()]).toEqual([403, expect.stringContaining('evil.example')])
    expect(await textOf('/', html, 'POST')).toBe('api')
    expect(await textOf('/', html, 'HEAD')).toBe('')
  })

  it('may load what is from here alone, and are asked for again each time', async () => {
    const { headers } = await get('/', { ...html, 'accept-encoding': 'br' })
    expect(Object.fromEntries(headers)).toEqual({
      'content-type': 'text/html; charset=utf-8',
      'content-encoding': 'br',
      'content-length': '7',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      'cache-control': 'no-cache',
      vary: 'accept, accept-encoding, authorization',
    })
  })
})

describe('files of pages', () => {
  it.each([
    ['m-1.js', 'text/javascript; charset=utf-8', 'code'],
    ['m-1.css', 'text/css; charset=utf-8', 'style'],
    ['l-1.svg', 'image/svg+xml', 'logo'],
    ['f-1.woff2', 'font/woff2', 'font'],
  ])('%s is %s, kept for ever', async (name, type, content) => {
    const answer = await get(`/assets/${name}`, { accept: '*/*' })
    expect(await answer.text()).toBe(content)
    expect(answer.headers.get('content-type')).toBe(type)
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(answer.headers.has('content-encoding')).toBe(false)
  })

  it('are compressed where that was made, and of other kinds not there', async () => {
    expect(await textOf('/assets/m-1.js', { 'accept-encoding': 'gzip, br' })).toBe('code gz')
    expect(await textOf('/assets/m-1.js.map')).toBe('api')
    expect(await textOf('/assets/m-1.js.gz')).toBe('api')
  })

  it('that were not built are no interface at all; what cannot be read is an error', async () => {
    expect(await readWebFiles(join(directory, 'nowhere'))).toBeUndefined()
    await expect(readWebFiles(join(directory, 'index.html'))).rejects.toMatchObject({ code: 'ENOTDIR' })
  })
})
