import { type FileHandle, lstat, open, readdir, rename, rm, stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Logger } from '@corral/ports'
import { CorralError } from '@corral/protocol'
import { type ConfinedPath, confine } from './confined-path.js'
import { fileParts } from './multipart.js'
import type { ProcessRegistry } from './process-registry.js'
import { shellWords } from './shell-words.js'
import { temporaryName } from './temporary-name.js'
import { runCollected } from './upstream-exec.js'

export interface LegacyRuntimeOptions {
  readonly processes: ProcessRegistry
  readonly env: NodeJS.ProcessEnv
  readonly defaultCwd: string
  readonly log: Logger
}

const maxBodyBytes = 2 * 1024 * 1024
const maxOutputBytes = 16 * 1024 * 1024
const routes = /^\/(?:(download|list|exists)\/([^?]*)|(execute|upload)|)(?:\?.*)?$/

/**
 * The HTTP API of upstream's Python runtime. Answers whether the request is one of its own; paths are read from the raw
 * request line, since clients send dot segments that a URL parser would fold away.
 */
export function legacyRuntime(
  options: LegacyRuntimeOptions,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  return (request, response) => {
    const match = routes.exec(request.url ?? '')
    if (!match) return false
    const action = match[1] ?? match[3] ?? 'health'
    const method = action === 'execute' || action === 'upload' ? 'POST' : 'GET'
    if (request.method !== method) return false
    void serve(options, action, match[2] ?? '', request, response).catch((error: unknown) => {
      fail(action, error, response, options.log)
    })
    return true
  }
}

async function serve(
  options: LegacyRuntimeOptions,
  action: string,
  tail: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const root = options.env.SANDBOX_BASE_DIR?.trim() || options.defaultCwd
  switch (action) {
    case 'health':
      return json(response, 200, { status: 'ok', message: 'Sandbox Runtime is active.' })
    case 'execute':
      return json(response, ...(await execute(options, root, request, response)))
    case 'upload':
      return upload(root, request, response)
  }
  const path = decodeURIComponent(tail)
  if (action === 'exists') {
    await using place = await found(root, path)
    return json(response, 200, { path, exists: place !== undefined })
  }
  await using place = await found(root, path)
  const info = place && (await stat(place.path))
  if (action === 'list') {
    if (!place || !info?.isDirectory()) return json(response, 404, { message: 'Path is not a directory' })
    return json(response, 200, await listing(root, path, place))
  }
  if (!place || !info?.isFile()) return json(response, 404, { message: 'File not found' })
  await using file = await disposable(open(place.path, 'r'))
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': info.size,
    'content-disposition': `attachment; filename*=utf-8''${encodeURIComponent(basename(path))}`,
  })
  // As many bytes as were announced, whatever the file has grown to meanwhile.
  if (info.size === 0) response.end()
  else await pipeline(file.value.createReadStream({ end: info.size - 1, autoClose: false }), response)
}

async function execute(
  options: LegacyRuntimeOptions,
  root: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<[number, object]> {
  const body = parseJson(await bodyText(request)) as { command?: unknown; timeout_seconds?: unknown } | undefined
  const asked = body?.timeout_seconds
  if (typeof body?.command !== 'string') return [422, validation('command', 'Input should be a valid string')]
  if (asked !== undefined && asked !== null && !(typeof asked === 'number' && asked > 0)) {
    return [422, validation('timeout_seconds', 'Input should be greater than 0')]
  }
  const limitSeconds = Number(options.env.SANDBOX_EXEC_TIMEOUT_SECONDS)
  const fallback = Number.isFinite(limitSeconds) && limitSeconds > 0 ? limitSeconds : 300
  const seconds = typeof asked === 'number' ? asked : fallback
  const gone = new AbortController()
  const onClose = () => gone.abort(new CorralError('Aborted', 'the client went away'))
  response.once('close', onClose)
  try {
    const argv = shellWords(body.command)
    if (argv.length === 0) throw new Error('the command is empty')
    const call = { timeoutMs: seconds * 1000, maxBytes: maxOutputBytes, signal: gone.signal }
    const result = await runCollected(options.processes, { argv, cwd: root }, call)
    if (result.isTimedOut) {
      const stderr = `Failed to execute command: Command timed out after ${seconds} seconds`
      return [200, { stdout: '', stderr, exit_code: typeof asked === 'number' ? 124 : 1, timed_out: true }]
    }
    const { signal, exit_code } = result.exit
    const [stdout, stderr] = [result.stdout.toString('utf8'), result.stderr.toString('utf8')]
    return [200, { stdout, stderr, exit_code: signal === undefined ? exit_code : -signal, timed_out: false }]
  } catch (error) {
    const stderr = `Failed to execute command: ${error instanceof Error ? error.message : String(error)}`
    return [200, { stdout: '', stderr, exit_code: 1, timed_out: false }]
  } finally {
    response.off('close', onClose)
  }
}

/** Each part goes to a file beside its destination, which takes its name when it is whole. */
async function upload(root: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  let uploaded: string | undefined
  for await (const part of fileParts(request)) {
    if (part.name !== 'file' || part.filename === undefined || uploaded !== undefined) {
      for await (const _ of part.chunks) {
        // Read past it.
      }
      continue
    }
    await using place = await confine(root, part.filename, true)
    if (place.isRoot) throw new CorralError('IsADirectory', 'the base directory is not a file')
    await replaceFile(place.path, part.chunks, 0o644)
    uploaded = part.filename
  }
  if (uploaded === undefined) return json(response, 422, validation('file', 'Field required'))
  json(response, 200, { message: `File '${uploaded}' uploaded successfully.` })
}

/** Writes a file as a whole: readers see the old or the new content. */
export async function replaceFile(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  mode: number,
  sync = false,
): Promise<void> {
  const existing = await lstat(path).catch(() => undefined)
  if (existing?.isDirectory()) throw new CorralError('IsADirectory', 'the path is a directory')
  const temporary = join(dirname(path), temporaryName())
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      for await (const chunk of chunks) await file.appendFile(chunk)
      await file.chmod(mode)
      if (sync) await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

async function listing(root: string, path: string, place: ConfinedPath): Promise<object[]> {
  const entries: object[] = []
  for (const name of await readdir(place.path)) {
    // Links that lead out, or nowhere, are not shown.
    await using entry = await found(root, `${path}/${name}`).catch(() => undefined)
    const info = entry && (await stat(entry.path).catch(() => undefined))
    if (!info) continue
    const type = info.isDirectory() ? 'directory' : 'file'
    entries.push({ name, size: info.size, type, mod_time: info.mtimeMs / 1000 })
  }
  return entries
}

/** The place, where something is there. */
export async function found(root: string, path: string): Promise<ConfinedPath | undefined> {
  try {
    const place = await confine(root, path)
    if (await lstat(place.path).catch(() => undefined)) return place
    await place[Symbol.asyncDispose]()
    return undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) {
      return undefined
    }
    throw error
  }
}

export async function disposable(opening: Promise<FileHandle>): Promise<{ value: FileHandle } & AsyncDisposable> {
  const value = await opening
  return { value, [Symbol.asyncDispose]: () => value.close() }
}

function fail(action: string, error: unknown, response: ServerResponse, log: Logger): undefined {
  if (response.headersSent) return drop(response)
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'PermissionDenied' || code === 'EACCES' || code === 'ELOOP') {
    return json(response, 403, { message: 'Access denied' })
  }
  if (code === 'BadRequest' || error instanceof URIError) return json(response, 400, { message: String(error) })
  if (code === 'RequestEntityTooLarge') return json(response, 413, { message: String(error) })
  const names: Record<string, string> = { upload: 'File upload failed', list: 'List files failed' }
  log.warn('legacy request failed', { action, error: String(error) })
  const reason = error instanceof Error ? error.message : String(error)
  return json(response, 500, { message: `${names[action] ?? 'Request failed'}: ${reason}` })
}

export function json(response: ServerResponse, status: number, body: object): undefined {
  const text = JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
  return undefined
}

/** Ends an answer without a JSON body. */
export function plain(response: ServerResponse, body = ''): undefined {
  response.end(body)
  return undefined
}

/** An answer that has begun can only be cut. */
export function drop(response: ServerResponse): undefined {
  response.destroy()
  return undefined
}

async function bodyText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  if (!request.readableEnded) {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > maxBodyBytes) throw new CorralError('RequestEntityTooLarge', 'the body is too long')
      chunks.push(chunk)
    }
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // refused as a body that does not fit
  }
}

function validation(field: string, message: string): object {
  return { detail: [{ type: 'value_error', loc: ['body', field], msg: message }] }
}
