import type { BytesIn, Fetch, FileInfo } from '@corral/protocol'
import * as z from 'zod'
import { SandboxError, toSandboxError } from '../sandbox-error.js'
import type { FileEntry, ProcessEvent, ProcessSpec, SandboxRuntime } from './sandbox-runtime.js'
import { unsupported } from './unsupported.js'

const kind = 'legacy'
const maxAnswerBytes = 16 * 1024 * 1024
const resultSchema = z.object({
  stdout: z.string().default(''),
  stderr: z.string().default(''),
  exit_code: z.number().int().default(-1),
})
const entrySchema = z.object({
  name: z.string(),
  size: z.number(),
  type: z.enum(['file', 'directory']),
  mod_time: z.number(),
})

/** Upstream's first runtime: commands to their end and whole files, below its base directory. */
export function legacyRuntime(fetch: Fetch, onCut: (failure: SandboxError) => Promise<void>): SandboxRuntime {
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
    const message = await bounded(answer).catch(() => '')
    const code = { 403: 'PermissionDenied', 404: 'NotFound', 422: 'Invalid' } as const
    const known = code[answer.status as keyof typeof code] ?? (answer.status >= 500 ? 'InternalError' : 'BadRequest')
    throw new SandboxError(known, `${init.method ?? 'GET'} ${path}: ${answer.status} ${message.slice(0, 500)}`)
  }
  const list = async (path: string, signal?: AbortSignal): Promise<FileEntry[]> => {
    const answer = await send(`/list/${encode(path)}`, signal ? { signal } : {})
    const entries = z.array(z.unknown()).parse(JSON.parse(await bounded(answer)))
    // Entries of a kind that is not known are left out.
    return entries.flatMap((entry) => {
      const parsed = entrySchema.safeParse(entry)
      if (!parsed.success) return []
      const { name, size, type, mod_time } = parsed.data
      const modified_at = new Date(mod_time * 1000).toISOString()
      return [{ name, path: name, size, type, mode: '0000', modified_at }]
    })
  }
  const stat = async (path: string, signal?: AbortSignal): Promise<FileInfo | undefined> => {
    const cut = path.replace(/\/+$/, '').lastIndexOf('/')
    const name = path.slice(cut + 1)
    const siblings = await list(cut <= 0 ? '' : path.slice(0, cut), signal).catch((error: unknown) => {
      if (error instanceof SandboxError && error.code === 'NotFound') return []
      throw error
    })
    return siblings.find((entry) => entry.name === name)
  }

  return {
    kind,
    start(spec) {
      if (spec.pty || spec.stdin !== undefined || spec.user !== undefined) {
        throw unsupported(kind, spec.pty ? 'a terminal' : spec.user ? 'another user' : 'standard input')
      }
      const refuse = async () => {
        throw unsupported(kind, 'control of a running command')
      }
      return { id: undefined, events: execute(send, spec), write: refuse, end: refuse, kill: refuse, resize: refuse }
    },
    metrics: async () => {
      throw unsupported(kind, 'usage')
    },
    bindEnv: async () => {
      throw unsupported(kind, 'environment after the start')
    },
    files: {
      async *read(path, { signal }) {
        const answer = await send(`/download/${encode(path)}`, signal ? { signal } : {})
        if (answer.body) yield* answer.body as AsyncIterable<Uint8Array>
      },
      async write(path, data, { mode, signal }) {
        if (mode !== undefined) throw unsupported(kind, 'a file mode')
        const form = new FormData()
        form.set('file', new Blob([await whole(data)]), safe(path))
        // The form's own framing, as bytes: the tunnel takes no other body.
        const framed = new Response(form)
        const body = new Uint8Array(await framed.arrayBuffer())
        const headers = { 'content-type': framed.headers.get('content-type') ?? '' }
        await bounded(await send('/upload', { method: 'POST', body, headers, ...(signal ? { signal } : {}) }))
      },
      stat: (path, { signal }) => stat(path, signal),
      async *list(path, { recursive, glob, signal }) {
        const { matchesGlob } = await import('node:path')
        const pending = ['']
        for (let inside = pending.pop(); inside !== undefined; inside = pending.pop()) {
          for (const entry of await list(`${path}/${inside}`, signal)) {
            const below = inside === '' ? entry.name : `${inside}/${entry.name}`
            if (entry.type === 'directory' && (recursive || glob !== undefined)) pending.push(below)
            if (glob === undefined || matchesGlob(below, glob)) yield { ...entry, path: below }
          }
        }
      },
      mkdir: refused('directories'),
      move: refused('moving files'),
      copy: refused('copying files'),
      remove: refused('deleting files'),
      watch: () => {
        throw unsupported(kind, 'watching files')
      },
      pack: () => {
        throw unsupported(kind, 'archives')
      },
      unpack: refused('archives'),
    },
  }
}

function refused(what: string): () => Promise<never> {
  return async () => {
    throw unsupported(kind, what)
  }
}

async function* execute(
  send: (path: string, init: RequestInit) => Promise<Response>,
  spec: ProcessSpec,
): AsyncIterable<ProcessEvent> {
  const body = JSON.stringify({ command: commandLine(spec) })
  const answer = await send('/execute', { method: 'POST', body, headers: { 'content-type': 'application/json' } })
  let result: z.infer<typeof resultSchema>
  try {
    result = resultSchema.parse(JSON.parse(await bounded(answer)))
  } catch (cause) {
    if (cause instanceof SandboxError) throw cause
    throw new SandboxError('ProtocolViolation', 'the runtime answered something that is no result', { cause })
  }
  let offset = 0
  for (const stream of ['stdout', 'stderr'] as const) {
    const data = new TextEncoder().encode(result[stream])
    if (data.length > 0) yield { type: 'data', stream, data, offset }
    offset += data.length
  }
  const signal = result.exit_code < -1 ? -result.exit_code : undefined
  yield { type: 'exit', exitCode: signal === undefined ? result.exit_code : 128 + signal, signal }
}

/** One line that the runtime's word splitting turns back into exactly these arguments. */
function commandLine({ argv, cwd, env = {} }: ProcessSpec): string {
  const inDirectory = cwd === undefined ? argv : ['/bin/sh', '-c', 'cd -- "$0" || exit 126; exec "$@"', cwd, ...argv]
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const words = variables.length === 0 ? inDirectory : ['env', ...variables, ...inDirectory]
  return words.map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ')
}

/** A path below the base directory, refused here where it would leave it. */
function safe(path: string): string {
  const inside = path.replace(/^\/+/, '')
  const hasWayOut = inside.split('/').includes('..')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused.
  if (inside === '' || inside === '.' || hasWayOut || /[\x00-\x1f]/.test(inside)) {
    throw new SandboxError('Invalid', `"${path}" is not a path below the base directory`)
  }
  return inside
}

/** Slashes stay encoded, and a lone dot becomes nothing: URL parsers fold it away. */
function encode(path: string): string {
  const inside = path.replace(/^\/+|\/+$/g, '')
  if (inside === '' || inside === '.') return ''
  const escaped = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`
  return encodeURIComponent(safe(inside)).replace(/[!'()*]/g, escaped)
}

async function whole(data: BytesIn): Promise<Uint8Array<ArrayBuffer>> {
  if (typeof data === 'string') return new TextEncoder().encode(data)
  if (data instanceof Uint8Array) return new Uint8Array(data)
  const chunks: Uint8Array[] = []
  for await (const chunk of data) chunks.push(chunk)
  return new Uint8Array(Buffer.concat(chunks))
}

async function bounded(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > maxAnswerBytes) {
      throw new SandboxError('OutputLimitExceeded', `the runtime answered with more than ${maxAnswerBytes} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
