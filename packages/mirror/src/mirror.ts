import { setMaxListeners } from 'node:events'
import { createReadStream } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { type Clock, type Logger, systemClock } from '@corral/ports'
import { byteRange } from './byte-range.js'
import type { DiskCache, Entry } from './disk-cache.js'
import type { Ecosystem, PackageRequest, Registry, Resource, Upstream } from './ecosystem.js'
import { ecosystems } from './ecosystems/index.js'
import { belowRegistry, isNodeClient, namesIn, npm, publishedTarball, registriesOf } from './ecosystems/npm.js'
import { fetchUpstream, UpstreamError } from './fetch-upstream.js'
import { signedFileLinks } from './file-links.js'
import { guardedFetch } from './guarded-fetch.js'
import { Turns } from './turns.js'

export interface MirrorOptions {
  readonly cache: DiskCache
  /** The mirror as clients see it, without a slash at the end. */
  readonly baseUrl: string
  /** Marks links to files on other hosts; the same after a restart, since lock files and indexes keep such links. */
  readonly linkSecret: Uint8Array
  /** Asked at each fetch, so that settings of the host count as soon as they change. */
  upstream(ecosystem: string): Promise<Upstream | undefined>
  /** False for addresses of this machine and of metadata services: files and redirects must not lead there. */
  mayReach(address: string): boolean
  readonly clock?: Clock
  readonly log: Logger
  /** How long a cached index is served before the registry is asked again. */
  readonly indexFreshMs?: number
}

export interface Mirror {
  /** Serves one request. Never rejects: a failure is answered, or ends the connection where the answer has begun. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
  close(): Promise<void>
}

/** An index of a large project is tens of megabytes; what is larger is no index. */
const maxIndexBytes = 256 * 1024 * 1024
/**
 * An index that is rewritten is in memory as a whole. A sandbox asks for as many as it likes: so many are fetched at once, and of
 * those that are larger than nearly all are, one.
 */
const indexesAtOnce = 64
const smallIndexBytes = 4 * 1024 * 1024

export function createMirror(options: MirrorOptions): Mirror {
  const { cache, log } = options
  const clock = options.clock ?? systemClock
  const links = signedFileLinks({ base: options.baseUrl, secret: options.linkSecret })
  /** Hosts of the registries with their ports, by ecosystem, as they were last read. */
  const known = new Map<string, readonly string[]>()
  const fetchFrom = guardedFetch({
    mayReach: (address) => options.mayReach(address),
    knownRegistryHosts: () => new Set([...known.values()].flat()),
    registryHosts,
  })
  const indexFreshMs = options.indexFreshMs ?? 300_000
  const life = new AbortController()
  setMaxListeners(0, life.signal) // every download in flight listens to it
  /** One download per key: clients that ask for the same meanwhile wait for it. */
  const downloads = new Map<string, Promise<Entry>>()
  const rewritten = new Turns(indexesAtOnce)
  const large = new Turns(1)

  async function upstreamOf(ecosystem: string): Promise<Upstream | undefined> {
    const upstream = await options.upstream(ecosystem)
    // Where crates lie is a setting of the registry itself; markers in the path do not change its host.
    const addresses = upstream?.registries.flatMap(({ url, download }) => [url.href, ...(download ? [download] : [])])
    const valid = (addresses ?? []).filter((address) => URL.canParse(address))
    known.set(
      ecosystem,
      valid.map((address) => new URL(address).host),
    )
    return upstream
  }

  async function registryHosts(): Promise<ReadonlySet<string>> {
    await Promise.all(ecosystems.map(({ name }) => upstreamOf(name)))
    return new Set([...known.values()].flat())
  }

  async function entryFor(ecosystem: string, resource: Resource): Promise<Entry> {
    const key = keyOf(ecosystem, resource, options.baseUrl)
    const stored = cache.find(key)
    if (stored && (resource.kind === 'artifact' || clock.now().getTime() - stored.checkedAtMs < indexFreshMs))
      return stored
    const running = downloads.get(key)
    if (running) return running
    const fetched = () => fetchEntry(key, resource, stored)
    const download = (resource.rewrite ? rewritten.run(fetched) : fetched()).finally(() => downloads.delete(key))
    downloads.set(key, download)
    return download
  }

  async function fetchEntry(key: string, resource: Resource, stored: Entry | undefined): Promise<Entry> {
    try {
      const response = await fetchUpstream(
        resource.sources,
        { accept: resource.accept, etag: stored?.etag, lastModified: stored?.lastModified },
        { fetch: fetchFrom, signal: life.signal },
      )
      if (response.status === 304 && stored) {
        await cache.renew(key)
        return stored
      }
      return await store(key, resource, response)
    } catch (error) {
      // While a registry cannot be reached, the last index is served, so that builds go on.
      if (!stored || life.signal.aborted || (error instanceof UpstreamError && error.status < 500)) throw error
      log.warn('index is served as it was', { from: stored.from, error })
      return stored
    }
  }

  async function store(key: string, resource: Resource, response: Response): Promise<Entry> {
    const from = response.url || (resource.sources[0]?.url.href ?? '')
    const contentType = response.headers.get('content-type') ?? 'application/octet-stream'
    const etag = response.headers.get('etag')
    const lastModified = response.headers.get('last-modified')
    const description = { contentType, from, ...(etag && { etag }), ...(lastModified && { lastModified }) }
    if (!response.body) return cache.put(key, description, Buffer.alloc(0))
    const body = Readable.fromWeb(response.body as ReadableStream)
    if (!resource.rewrite) {
      // With a Content-Encoding, Content-Length is that of the compressed bytes, and `fetch` has decompressed the body.
      const length = response.headers.has('content-encoding') ? null : response.headers.get('content-length')
      return cache.put(key, { ...description, ...(length && { size: Number(length) }) }, body, life.signal)
    }
    const { rewrite } = resource
    const keep = (whole: Buffer) => cache.put(key, description, rewrite(whole, new URL(from), contentType), life.signal)
    const chunks = new IndexChunks(body, from)
    if (await chunks.fill(smallIndexBytes)) return keep(chunks.whole())
    return large.run(async () => {
      await chunks.fill(maxIndexBytes)
      return keep(chunks.whole())
    })
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return refuse(response, 405, `the package mirror only reads: ${request.method} is not served`)
    }
    const path = (request.url ?? '/').split('?')[0] ?? '/'
    const target = await resolve(path, request)
    if (target === undefined) return refuse(response, 404, `the package mirror knows no ${path}`)
    if ('refusal' in target) return refuse(response, target.status, target.refusal)
    if ('body' in target) {
      response.writeHead(200, { 'content-type': target.contentType, 'content-length': Buffer.byteLength(target.body) })
      response.end(request.method === 'HEAD' ? undefined : target.body)
      return
    }
    await send(request, response, await entryFor(target.ecosystem, target.resource), target.resource.kind)
  }

  async function resolve(path: string, request: IncomingMessage) {
    const [, first = '', ...rest] = isTarballAtRoot(path) ? `/npm${path}`.split('/') : path.split('/')
    const asked = {
      path: rest.join('/'),
      accept: request.headers.accept ?? '',
      userAgent: request.headers['user-agent'] ?? '',
    }
    if (first === 'files') {
      const file = links.from(asked.path)
      return (
        file && {
          ecosystem: 'files',
          resource: { sources: [await asRegistry(file)], kind: 'artifact' } satisfies Resource,
        }
      )
    }
    if (climbs(path)) return undefined
    const ecosystem = ecosystems.find(({ name }) => name === first)
    const target = ecosystem && (await inEcosystem(ecosystem, asked))
    if (target) return target
    if (!isNodeClient(asked.userAgent)) return undefined
    for (const each of first === 'npm' ? [`/${asked.path}`, path] : [path]) {
      const found = await npmTarball(each, asked)
      if (found) return found
    }
    return undefined
  }

  /** A file of a registry itself, with its credentials. */
  async function asRegistry({ url, ecosystem }: NonNullable<ReturnType<typeof links.from>>): Promise<Registry> {
    const { registries = [] } = (ecosystem && (await upstreamOf(ecosystem))) || {}
    const { authorization } = registries.find((registry) => registry.url.origin === url.origin) ?? {}
    return { url, ...(authorization && { authorization }) }
  }

  /** A tarball by the path it has at its registry, see `belowRegistry` and `publishedTarball`. */
  async function npmTarball(path: string, asked: PackageRequest) {
    const upstream = await upstreamOf(npm.name)
    if (!upstream) return undefined
    const below = belowRegistry(path, upstream)
    const found = below === undefined ? undefined : npm.resource({ ...asked, path: below }, upstream, links)
    if (found) return described(npm, found)
    for (const name of namesIn(path)) {
      const packument = npm.resource({ path: name, accept: 'vnd.npm.install-v1', userAgent: 'npm/' }, upstream, links)
      if (packument === undefined || 'body' in packument) continue
      const entry = await entryFor(npm.name, packument)
      const source = publishedTarball(await readFile(entry.path, 'utf8'), path, registriesOf(name, upstream))
      if (source) return { ecosystem: npm.name, resource: { sources: [source], kind: 'artifact' } satisfies Resource }
    }
    return undefined
  }

  async function inEcosystem(ecosystem: Ecosystem, asked: PackageRequest) {
    const upstream = await upstreamOf(ecosystem.name)
    if (!upstream || upstream.registries.length === 0)
      return { refusal: `no ${ecosystem.name} registry is configured on this machine`, status: 404 }
    return described(ecosystem, ecosystem.resource(asked, upstream, links))
  }

  return {
    async handle(request, response) {
      try {
        await serve(request, response)
      } catch (error) {
        if (response.headersSent) return void response.destroy()
        const status = error instanceof UpstreamError ? error.status : 502
        if (status >= 500) log.warn('package not fetched', { url: request.url, error })
        refuse(response, status, error instanceof Error ? error.message : String(error))
      }
    },
    async close() {
      life.abort(new Error('the package mirror is closed'))
      await Promise.allSettled(downloads.values())
      await cache.close()
    },
  }
}

/**
 * A lock file names files by the public registry. npm puts the configured registry's host in its place and leaves the path behind
 * it out, so such files are asked for without the ecosystem in front.
 */
const isTarballAtRoot = (path: string): boolean => /^\/(@[\w.~-]+\/)?[\w.~-]+\/-\/[^/]+\.tgz$/.test(path)

/**
 * Whether a path goes up in any spelling an address parser or a registry may understand. The address of a registry with the
 * path behind it would then lie outside of the registry, on a host that is sent the registry's credentials.
 */
const climbs = (path: string): boolean =>
  path
    .replace(/%2f|%5c|\\/gi, '/')
    .replace(/%2e/gi, '.')
    .split('/')
    .some((part) => part === '.' || part === '..')

function described(ecosystem: Ecosystem, resource: ReturnType<Ecosystem['resource']>) {
  if (resource === undefined || 'body' in resource) return resource
  return { ecosystem: ecosystem.name, resource }
}

/** The key holds the base address of the mirror, since rewritten indexes contain it. */
const keyOf = (ecosystem: string, resource: Resource, baseUrl: string): string =>
  JSON.stringify([
    ecosystem,
    resource.sources.map(({ url }) => url.href),
    resource.accept ?? '',
    resource.variant ?? '',
    resource.rewrite ? baseUrl : '',
  ])

/** Most packages are smaller than this: read whole and sent with the headers they take half of what a stream takes. */
const atOnceBytes = 256 * 1024

async function readPart(path: string, start: number, length: number): Promise<Buffer> {
  const file = await open(path)
  try {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, start)
    if (bytesRead !== length) throw new Error(`${path} has lost some of its content`)
    return buffer
  } finally {
    // The answer does not wait for the file to be closed: it was opened for reading, so closing it can lose no data.
    void file.close().catch(() => undefined)
  }
}

async function send(
  request: IncomingMessage,
  response: ServerResponse,
  entry: Entry,
  kind: Resource['kind'],
): Promise<void> {
  const headers: Record<string, string | number> = {
    'content-type': entry.contentType,
    'accept-ranges': 'bytes',
    'cache-control': kind === 'artifact' ? 'max-age=31536000, immutable' : 'no-cache',
    ...(entry.etag && { etag: entry.etag }),
    ...(entry.lastModified && { 'last-modified': entry.lastModified }),
  }
  if (entry.etag && request.headers['if-none-match'] === entry.etag) {
    response.writeHead(304, headers).end()
    return
  }
  const range = byteRange(request.headers.range, entry.size)
  if (range === 'unsatisfiable') {
    response.writeHead(416, { 'content-range': `bytes */${entry.size}` }).end()
    return
  }
  const { start, end } = range ?? { start: 0, end: entry.size - 1 }
  const length = end - start + 1
  if (range) headers['content-range'] = `bytes ${start}-${end}/${entry.size}`
  headers['content-length'] = length
  const status = range ? 206 : 200
  const hasBody = request.method !== 'HEAD' && length > 0
  if (!hasBody || length <= atOnceBytes) {
    const body = hasBody ? await readPart(entry.path, start, length) : undefined
    response.writeHead(status, headers).end(body)
    return
  }
  response.writeHead(status, headers)
  // A client that closes the connection early is not an error of the mirror.
  await pipeline(createReadStream(entry.path, { start, end, highWaterMark: 256 * 1024 }), response).catch(() =>
    response.destroy(),
  )
}

function refuse(response: ServerResponse, status: number, message: string): void {
  const body = `${message}\n`
  response
    .writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(body) })
    .end(body)
}

/** The body of an index as it comes. While its turn is waited for, nothing more is read from the registry. */
class IndexChunks {
  readonly #chunks: Buffer[] = []
  readonly #body: AsyncIterator<Buffer>
  #bytes = 0

  constructor(
    body: Readable,
    readonly from: string,
  ) {
    this.#body = body[Symbol.asyncIterator]()
  }

  /** Reads until the end, which is true, or until there is more than `atMost`. */
  async fill(atMost: number): Promise<boolean> {
    while (this.#bytes <= atMost) {
      const { done, value } = await this.#body.next()
      if (done) return true
      this.#chunks.push(value)
      this.#bytes += value.length
    }
    if (atMost < maxIndexBytes) return false
    await this.#body.return?.()
    throw new UpstreamError(502, `the index ${this.from} is larger than ${maxIndexBytes} bytes`)
  }

  whole(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}
