import type { Duplex } from 'node:stream'
import { create } from '@bufbuild/protobuf'
import { EmptySchema } from '@bufbuild/protobuf/wkt'
import { type Client, Code, ConnectError, createClient } from '@connectrpc/connect'
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node'
import type { ByteStream } from '@corral/ports'
import type { BytesIn, ErrorCode, Fetch, FileInfo, SignalName } from '@corral/protocol'
import { ProcessService, Signal } from '@corral/protocol/process-service'
import * as z from 'zod'
import { ByteStreamSocket } from '../byte-stream-socket.js'
import { SandboxError, toSandboxError } from '../sandbox-error.js'
import type { FileEntry, ProcessEvent, ProcessSpec, RuntimeProcess, SandboxRuntime } from './sandbox-runtime.js'
import { unsupported } from './unsupported.js'

const kind = 'sandboxd'
const maxAnswerBytes = 16 * 1024 * 1024
const maxStdinBytes = 1024 * 1024
/** Of what a command of ours says about its failure. */
const keptWords = 2048
const listingSchema = z.object({
  entries: z.array(
    z.object({
      name: z.string(),
      size: z.number(),
      type: z.string(),
      modified_at: z.string(),
      mode: z.string().default('0000'),
    }),
  ),
})
const errorSchema = z.object({ code: z.string(), message: z.string() })
const signals: Partial<Record<SignalName, Signal>> = {
  SIGINT: Signal.SIGINT,
  SIGKILL: Signal.SIGKILL,
  SIGTERM: Signal.SIGTERM,
}

/** Upstream's sandboxd: gRPC for processes, REST for files below its root directory. */
export function sandboxdRuntime(
  fetch: Fetch,
  dial: () => Promise<ByteStream>,
  onCut: (failure: SandboxError) => Promise<void>,
): SandboxRuntime & { close(): void } {
  // Kept beside the session: an error it emits after the session manager has let go of it ends the program.
  const failures: Failures = { last: undefined }
  const createConnection = (): Duplex => {
    failures.last = undefined
    const onFailure = (failure: Error): void => {
      failures.last = failure
    }
    return new ByteStreamSocket(dial(), { check: checkHttp2, onFailure })
  }
  const manager = new Http2SessionManager('http://sandbox', {}, { createConnection })
  // Without a limit a sandbox that answers with a few megabytes of gzip makes 4 GiB of them in the program of its user.
  const limits = { readMaxBytes: maxAnswerBytes }
  const transport = createGrpcTransport({ baseUrl: 'http://sandbox', sessionManager: manager, ...limits })
  const processes: Processes = { client: createClient(ProcessService, transport), failures }
  const send = async (path: string, init: RequestInit = {}): Promise<Response> => {
    let answer: Response
    try {
      answer = await fetch(`http://sandbox${path}`, init)
    } catch (error) {
      const failure = toSandboxError(error, init.signal ?? undefined)
      if (failure.code !== 'Aborted') await onCut(failure)
      throw failure
    }
    if (answer.ok) return answer
    const text = init.method === 'HEAD' ? '' : await bounded(answer).catch(() => '')
    throw restFailure(answer.status, text, `${init.method ?? 'GET'} ${path}`)
  }
  const list = async (path: string, signal?: AbortSignal): Promise<FileEntry[]> => {
    const answer = await send(`/v1/files/${encode(path)}`, signal ? { signal } : {})
    if (!answer.headers.get('content-type')?.startsWith('application/json')) {
      await answer.body?.cancel()
      throw new SandboxError('NotADirectory', `"${path}" is not a directory`)
    }
    return listingSchema.parse(JSON.parse(await bounded(answer))).entries.flatMap((entry) => {
      const { type } = entry
      return type === 'file' || type === 'directory' ? [{ ...entry, type, path: entry.name }] : []
    })
  }
  const stat = async (path: string, signal?: AbortSignal): Promise<FileInfo | undefined> => {
    const clean = path.replace(/\/+$/, '')
    const cut = clean.lastIndexOf('/')
    try {
      return (await list(cut <= 0 ? '' : clean.slice(0, cut), signal)).find(({ name }) => name === clean.slice(cut + 1))
    } catch (error) {
      if (error instanceof SandboxError && (error.code === 'NotFound' || error.code === 'NotADirectory'))
        return undefined
      throw error
    }
  }

  return {
    kind,
    close: () => manager.abort(),
    start(spec) {
      if (spec.user !== undefined) throw unsupported(kind, 'another user')
      return startProcess(processes, spec, onCut)
    },
    metrics: async () => {
      throw unsupported(kind, 'usage')
    },
    bindEnv: async () => {
      throw unsupported(kind, 'environment after the start')
    },
    files: {
      async *read(path, { signal }) {
        const answer = await send(`/v1/files/${encode(path)}`, signal ? { signal } : {})
        if (answer.headers.get('content-type')?.startsWith('application/json')) {
          const info = await stat(path, signal)
          if (info?.type === 'directory') throw new SandboxError('IsADirectory', `"${path}" is a directory`)
        }
        if (answer.body) yield* answer.body as AsyncIterable<Uint8Array>
      },
      async write(path, data, { mode, signal }) {
        const query = mode === undefined ? '' : `?mode=${encodeURIComponent(mode.padStart(4, '0'))}`
        const headers = { 'content-type': 'application/octet-stream' }
        const init = { method: 'PUT', body: bodyOf(data), headers, duplex: 'half', ...(signal ? { signal } : {}) }
        await bounded(await send(`/v1/files/${encode(path)}${query}`, init as RequestInit))
      },
      stat: (path, { signal }) => stat(path, signal),
      async *list(path, { recursive, glob, signal }) {
        const { matchesGlob } = await import('node:path')
        const pending = ['']
        for (let inside = pending.pop(); inside !== undefined; inside = pending.pop()) {
          for (const entry of await list(inside === '' ? path : `${path}/${inside}`, signal)) {
            const below = inside === '' ? entry.name : `${inside}/${entry.name}`
            if (entry.type === 'directory' && (recursive || glob !== undefined)) pending.push(below)
            if (glob === undefined || matchesGlob(below, glob)) yield { ...entry, path: below }
          }
        }
      },
      mkdir: (path) => simple(processes, inRoot('mkdir -p -- "$1"', [path])),
      move: (from, to, { overwrite }) =>
        simple(processes, inRoot(`${overwrite ? '' : refuseTaken}mv -T -f -- "$1" "$2"`, [from, to])),
      copy: (from, to, { overwrite }) =>
        simple(processes, inRoot(`${overwrite ? '' : refuseTaken}cp -a -- "$1" "$2"`, [from, to])),
      async remove(path, { recursive, signal }) {
        const query = recursive ? '?recursive=true' : ''
        try {
          await send(`/v1/files/${encode(path)}${query}`, { method: 'DELETE', ...(signal ? { signal } : {}) })
        } catch (error) {
          if (!(error instanceof SandboxError && error.code === 'NotFound')) throw error
        }
      },
      watch: () => {
        throw unsupported(kind, 'watching files')
      },
      async *pack(directory) {
        const tar = startProcess(processes, { argv: inRoot('exec tar -C "$1" -cf - .', [directory]) }, onCut)
        yield* outputOf(tar)
      },
      async unpack(directory, tar) {
        const argv = inRoot('mkdir -p -- "$1" && exec tar -C "$1" -xof -', [directory])
        const process = startProcess(processes, { argv, stdin: 'open' }, onCut)
        const fed = (async () => {
          for await (const chunk of tar) await process.write(chunk)
          await process.end()
        })()
        fed.catch(() => {})
        for await (const _ of outputOf(process)) {
          // tar says nothing while it unpacks.
        }
        await fed
      },
    },
  }
}

interface Failures {
  last: Error | undefined
}

interface Processes {
  readonly client: Client<typeof ProcessService>
  /** Why the connection under the client broke. */
  readonly failures: Failures
}

const settingsFrame = 4

/** A server of HTTP/2 speaks first, with its settings. */
function checkHttp2(first: Uint8Array): void {
  const type = first[3]
  if (type !== undefined && type !== settingsFrame)
    throw new SandboxError(
      'Unsupported',
      'what answers on port 9090 of the sandbox is not sandboxd: it does not speak gRPC',
    )
}

/**
 * A script whose arguments are paths as the REST side reads them: below the root directory, which is where commands start,
 * with or without its name in front.
 */
function inRoot(script: string, paths: readonly string[]): string[] {
  const place =
    'p() { case "$1" in "$PWD"|"$PWD"/*) printf %s "$1";; /*) printf %s ".$1";; *) printf %s "./$1";; esac; }'
  const places = paths.map((_, index) => `"$(p "$${index + 1}")"`).join(' ')
  return ['/bin/sh', '-c', `${place}; set -- ${places}; ${script}`, 'sh', ...paths.map(checked)]
}

const refuseTaken = '[ ! -e "$2" ] && [ ! -L "$2" ] || { echo "File exists" >&2; exit 17; }; '

function startProcess(
  { client, failures }: Processes,
  spec: ProcessSpec,
  onCut: (failure: SandboxError) => Promise<void>,
): RuntimeProcess {
  const { argv, cwd, env = {}, pty, stdin } = spec
  const config = { command: [...argv], envVars: { ...env }, ...(cwd === undefined ? {} : { cwd }) }
  const gone = new AbortController()
  let begin: { resolve: (id: number) => void; reject: (error: unknown) => void }
  const processId = new Promise<number>((resolve, reject) => {
    begin = { resolve, reject }
  })
  processId.catch(() => {})
  const write = async (data: Uint8Array): Promise<void> => {
    const id = await processId
    for (let at = 0; at < data.length; at += maxStdinBytes) {
      const value = data.subarray(at, at + maxStdinBytes)
      await translated(failures, client.writeStdin({ processId: id, payload: { case: 'input', value } }))
    }
  }
  const end = async (): Promise<void> => {
    const id = await processId
    // Closing a terminal's input would close the terminal: end of file is a character there.
    if (pty) return write(Uint8Array.of(4))
    await translated(
      failures,
      client.writeStdin({ processId: id, payload: { case: 'eof', value: create(EmptySchema) } }),
    )
  }
  async function* events(): AsyncIterable<ProcessEvent> {
    let offset = 0
    try {
      const size = pty ? { pty: { cols: pty.columns, rows: pty.rows } } : {}
      for await (const { event } of client.start({ config, ...size }, { signal: gone.signal })) {
        switch (event.case) {
          case 'init':
            begin.resolve(event.value.processId)
            // The process reads its end of file at once where nothing is to be written.
            if (stdin !== 'open' && !pty) void (stdin ? write(stdin).then(end) : end()).catch(() => {})
            break
          case 'stdout':
          case 'stderr':
            yield { type: 'data', stream: event.case, data: event.value, offset }
            offset += event.value.length
            break
          case 'exit': {
            const { exitCode } = event.value
            yield { type: 'exit', exitCode, signal: exitCode > 128 && exitCode <= 192 ? exitCode - 128 : undefined }
            return
          }
        }
      }
      throw new SandboxError('ConnectionLost', 'the command was cut off')
    } catch (error) {
      begin.reject(error)
      const failure = rpcFailure(failures, error)
      if (failure.code === 'ConnectionLost') await onCut(failure)
      throw failure
    } finally {
      gone.abort()
    }
  }
  return {
    id: undefined,
    events: events(),
    write,
    end,
    async kill(name) {
      const signal = signals[name]
      if (signal === undefined) throw unsupported(kind, `signal ${name}`)
      await translated(failures, client.sendSignal({ processId: await processId, signal }))
    },
    async resize({ columns, rows }) {
      await translated(failures, client.resizeTTY({ processId: await processId, cols: columns, rows }))
    },
  }
}

async function* outputOf(process: RuntimeProcess): AsyncIterable<Uint8Array> {
  let stderr = ''
  for await (const event of process.events) {
    if (event.type === 'data' && event.stream === 'stdout') yield event.data
    if (event.type === 'data' && event.stream === 'stderr')
      stderr = (stderr + Buffer.from(event.data).toString('utf8')).slice(-keptWords)
    if (event.type === 'exit' && event.exitCode !== 0) throw new SandboxError('ArchiveFailed', stderr.trim())
  }
}

async function simple({ client, failures }: Processes, command: string[]): Promise<void> {
  const { exitCode, stderr } = await translated(failures, client.execute({ config: { command } }))
  if (exitCode === 0) return
  const words = Buffer.from(stderr).toString('utf8').trim()
  const code = /No such file/.test(words) ? 'NotFound' : /File exists/.test(words) ? 'AlreadyExists' : 'CommandFailed'
  throw new SandboxError(code, words)
}

const rpcCodes: Partial<Record<Code, ErrorCode>> = {
  [Code.InvalidArgument]: 'Invalid',
  [Code.PermissionDenied]: 'PermissionDenied',
  [Code.NotFound]: 'NotFound',
  [Code.FailedPrecondition]: 'Conflict',
  [Code.ResourceExhausted]: 'OutputLimitExceeded',
  [Code.Unauthenticated]: 'Unauthorized',
  [Code.DeadlineExceeded]: 'Timeout',
  [Code.Canceled]: 'ConnectionLost',
  [Code.Aborted]: 'ConnectionLost',
  [Code.Unavailable]: 'ConnectionLost',
  [Code.Unknown]: 'ConnectionLost',
  [Code.Unimplemented]: 'Unsupported',
}

function rpcFailure({ last }: Failures, error: unknown): SandboxError {
  if (error instanceof SandboxError) return error
  if (last) return toSandboxError(last)
  const rpc = ConnectError.from(error)
  return new SandboxError(rpcCodes[rpc.code] ?? 'InternalError', rpc.rawMessage, { cause: error })
}

async function translated<T>(failures: Failures, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw rpcFailure(failures, error)
  }
}

function restFailure(status: number, text: string, what: string): SandboxError {
  const codes: Record<number, ErrorCode> = {
    400: 'Invalid',
    401: 'Unauthorized',
    403: 'PermissionDenied',
    404: 'NotFound',
    409: 'DirectoryNotEmpty',
    503: 'ServiceUnavailable',
  }
  let parsed: ReturnType<typeof errorSchema.safeParse> | undefined
  try {
    parsed = errorSchema.safeParse(JSON.parse(text))
  } catch {
    // Not JSON: a proxy's page. The status tells.
  }
  const details = { status, ...(parsed?.success ? { code: parsed.data.code } : {}) }
  const message = parsed?.success ? parsed.data.message : `${what} answered ${status}`
  return new SandboxError(codes[status] ?? 'InternalError', message, { details })
}

/** One segment, slashes encoded, so that no proxy folds dots or doubles of slashes. */
function encode(path: string): string {
  const clean = checked(path).replace(/(?<=.)\/+$/, '')
  if (clean === '' || clean === '.' || clean === '/') return ''
  return encodeURIComponent(clean).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

function checked(path: string): string {
  if (path.includes('\0') || path.split('/').includes('..')) {
    throw new SandboxError('Invalid', `"${path}" is not a path below the root directory`)
  }
  return path
}

function bodyOf(data: BytesIn): Uint8Array | string | ReadableStream<Uint8Array> {
  if (typeof data === 'string' || data instanceof Uint8Array) return data
  const iterator = data[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: async () => void (await iterator.return?.()),
  })
}

async function bounded(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > maxAnswerBytes) throw new SandboxError('OutputLimitExceeded', 'the answer is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
