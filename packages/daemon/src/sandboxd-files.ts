import { lstat, open, readdir, rm, rmdir, stat, unlink } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { Logger } from '@corral/ports'
import { CorralError } from '@corral/protocol'
import { confine } from './confined-path.js'
import { disposable, drop, found, json, plain, replaceFile } from './legacy-runtime.js'
import { fileParts } from './multipart.js'

export interface SandboxdFilesOptions {
  /** Everything stays below it. */
  readonly root: string
  /** Variables whose names start with this and hold no secret are shown. */
  readonly metadataPrefix: string
  readonly env: NodeJS.ProcessEnv
  readonly log: Logger
  readonly isStopping: () => boolean
}

const secretWords = /TOKEN|SECRET|PASSWORD|PASSWD|CRED|KEY|AUTH|BEARER|PRIVATE|CERT/i
const flags: Readonly<Record<string, boolean>> = Object.fromEntries([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true]),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false]),
])

/** The REST API of upstream's sandboxd. Paths are read from the raw request line. */
export function sandboxdFiles(options: SandboxdFilesOptions): (req: IncomingMessage, res: ServerResponse) => void {
  const startedAtMs = performance.now()
  return (request, response) => {
    void serve(options, startedAtMs, request, response).catch((error: unknown) => fail(error, response, options.log))
  }
}

async function serve(
  options: SandboxdFilesOptions,
  startedAtMs: number,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [target = '', search = ''] = (request.url ?? '').split('?', 2)
  const query = new URLSearchParams(search)
  if (target === '/v1/health') return health(options, startedAtMs, response)
  if (target === '/v1/metadata') return json(response, 200, { env: visibleEnv(options) })
  if (!target.startsWith('/v1/files')) return plain(response.writeHead(404), '404 page not found\n')
  const path = decodeURIComponent(target.slice('/v1/files'.length).replace(/^\//, ''))
  switch (request.method) {
    case 'GET':
    case 'HEAD':
      return read(options.root, path, request, response)
    case 'PUT':
      return write(options.root, path, query, request, response)
    case 'DELETE':
      return remove(options.root, path, query, response)
    default:
      response.writeHead(405, { allow: 'GET, HEAD, PUT, DELETE' }).end('Method Not Allowed\n')
  }
}

function health(options: SandboxdFilesOptions, startedAtMs: number, response: ServerResponse): undefined {
  if (options.isStopping()) return json(response, 503, { code: 'UNAVAILABLE', message: 'shutting down' })
  return json(response, 200, { status: 'ok', uptime_seconds: Math.floor((performance.now() - startedAtMs) / 1000) })
}

function visibleEnv({ env, metadataPrefix }: SandboxdFilesOptions): Record<string, string> {
  const visible = Object.entries(env).filter(([name]) => name.startsWith(metadataPrefix) && !secretWords.test(name))
  return Object.fromEntries(visible.map(([name, value]) => [name, value ?? '']))
}

async function read(root: string, path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  await using place = await found(root, path)
  if (!place) return json(response, 404, { code: 'NOT_FOUND', message: `${path}: no such file or directory` })
  const info = await stat(place.path)
  if (info.isDirectory()) {
    if (request.method === 'HEAD') return plain(response.writeHead(200, { 'content-type': 'application/json' }))
    return json(response, 200, { path: `/${path}`, entries: await entriesOf(root, path, place.path) })
  }
  const range = readRange(request.headers.range, info.size)
  const modified = info.mtime.toUTCString()
  const headers = { 'last-modified': modified, 'accept-ranges': 'bytes', 'content-type': 'application/octet-stream' }
  const since = Date.parse(request.headers['if-modified-since'] ?? '')
  if (since >= Math.floor(info.mtimeMs / 1000) * 1000) return plain(response.writeHead(304, headers))
  if (range === 'invalid') {
    return plain(response.writeHead(416, { 'content-range': `bytes */${info.size}` }))
  }
  const { start, end } = range ?? { start: 0, end: info.size - 1 }
  response.writeHead(range ? 206 : 200, {
    ...headers,
    'content-length': end - start + 1,
    ...(range ? { 'content-range': `bytes ${start}-${end}/${info.size}` } : {}),
  })
  if (request.method === 'HEAD' || end < start) return plain(response)
  await using file = await disposable(open(place.path, 'r'))
  await pipeline(file.value.createReadStream({ start, end, autoClose: false }), response)
}

function readRange(text: string | undefined, size: number): { start: number; end: number } | 'invalid' | undefined {
  if (text === undefined || text.includes(',')) return undefined
  const match = /^bytes=(\d*)-(\d*)$/.exec(text)
  if (!match || (match[1] === '' && match[2] === '')) return undefined
  const start = match[1] === '' ? Math.max(0, size - Number(match[2])) : Number(match[1])
  const end = match[1] === '' || match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1)
  return start > end || start >= size ? 'invalid' : { start, end }
}

async function entriesOf(root: string, path: string, directory: string): Promise<object[]> {
  const entries: object[] = []
  for (const name of (await readdir(directory)).sort()) {
    // Links that lead out of the root, or nowhere, are left out.
    await using entry = await found(root, `${path}/${name}`).catch(() => undefined)
    const info = entry && (await stat(entry.path).catch(() => undefined))
    if (!info) continue
    entries.push({
      name,
      size: info.size,
      type: info.isDirectory() ? 'directory' : 'file',
      modified_at: info.mtime.toISOString().replace(/\.\d+Z$/, 'Z'),
      mode: `0${(info.mode & 0o777).toString(8).padStart(3, '0')}`,
    })
  }
  return entries
}

async function write(
  root: string,
  path: string,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const mode = query.get('mode') ?? '0644'
  if (!/^0[0-7]{3}$/.test(mode)) throw new CorralError('BadRequest', `invalid mode "${mode}"`)
  await using place = await confine(root, path, true)
  if (place.isRoot) throw new CorralError('IsADirectory', 'target is a directory')
  const bits = Number.parseInt(mode, 8)
  if (!request.headers['content-type']?.startsWith('multipart/form-data')) {
    await replaceFile(place.path, request as AsyncIterable<Uint8Array>, bits, true)
    return plain(response.writeHead(204))
  }
  for await (const part of fileParts(request)) {
    if (part.name !== 'file') break
    await replaceFile(place.path, part.chunks, bits, true)
    return plain(response.writeHead(204))
  }
  throw new CorralError('BadRequest', 'the first part must be named "file"')
}

async function remove(root: string, path: string, query: URLSearchParams, response: ServerResponse): Promise<void> {
  const word = query.get('recursive')
  const recursive = word === null ? false : flags[word]
  if (recursive === undefined) throw new CorralError('BadRequest', `invalid recursive "${word}"`)
  const last = path.replace(/\/+$/, '').split('/').at(-1) ?? ''
  // The parent is looked up, not the path itself: a link is deleted, never what it leads to.
  const parent = last === '..' || last === '.' ? undefined : path.replace(/\/+$/, '').split('/').slice(0, -1).join('/')
  await using directory = await confine(root, parent === undefined || last === '' ? path : parent)
  if (last === '' || parent === undefined) {
    if (!directory.isRoot) throw new CorralError('BadRequest', 'the path does not name an entry')
    if (!recursive) throw new CorralError('DirectoryNotEmpty', 'the root is only emptied with recursive=true')
    for (const name of await readdir(directory.path)) await rm(`${directory.path}/${name}`, { recursive: true })
    return plain(response.writeHead(204))
  }
  const target = `${directory.path}/${last}`
  const info = await lstat(target)
  if (!info.isDirectory()) await unlink(target)
  else if (recursive) await rm(target, { recursive: true })
  else await rmdir(target)
  response.writeHead(204).end()
}

const failures: Readonly<Record<string, readonly [number, string]>> = {
  BadRequest: [400, 'INVALID_ARGUMENT'],
  IsADirectory: [400, 'INVALID_ARGUMENT'],
  EISDIR: [400, 'INVALID_ARGUMENT'],
  PermissionDenied: [403, 'PERMISSION_DENIED'],
  EACCES: [403, 'PERMISSION_DENIED'],
  EPERM: [403, 'PERMISSION_DENIED'],
  ENOENT: [404, 'NOT_FOUND'],
  ENOTDIR: [404, 'NOT_FOUND'],
  ENOTEMPTY: [409, 'CONFLICT'],
  DirectoryNotEmpty: [409, 'CONFLICT'],
}

function fail(error: unknown, response: ServerResponse, log: Logger): undefined {
  if (response.headersSent) return drop(response)
  const message = error instanceof Error ? error.message : String(error)
  const code = error instanceof URIError ? 'BadRequest' : error instanceof Error && 'code' in error ? error.code : ''
  const [status, name] = failures[String(code)] ?? [500, 'INTERNAL']
  if (status === 500) log.warn('sandboxd request failed', { error: message })
  return json(response, status, { code: name, message })
}
