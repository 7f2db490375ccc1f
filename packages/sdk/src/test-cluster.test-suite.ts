import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import type {
  ApiConnection,
  ApiHandler,
  ApiRequest,
  ApiResponse,
  ByteStream,
  DuplexProcess,
  WatchFrame,
} from '@corral/ports'
import type { KubeObject, Stored, WatchEvent } from '@corral/resources'

/**
 * A cluster just large enough for the SDK: objects with versions and watches, commands as local processes, ports as
 * local ports. `react` plays the controllers: it sees every write and may write itself.
 */
export class TestCluster implements ApiHandler {
  readonly objects = new Map<string, Stored<KubeObject>>()
  readonly requests: string[] = []
  /** Local port per pod port. */
  readonly ports = new Map<number, number>()
  react: (path: string, object: Stored<KubeObject>) => void = () => {}
  readonly #log: { version: number; path: string; event: WatchEvent }[] = []
  readonly #listeners = new Set<() => void>()
  #version = 1

  client(): KubeClient {
    return inProcessKubeClient(this)
  }

  async handle(request: ApiRequest): Promise<ApiResponse> {
    const { method, path, query } = request
    this.requests.push(`${method} ${path}${query.get('watch') ? '?watch' : ''}`)
    if (path === '/version') return answer(200, { gitVersion: 'v1.34.4+test' })
    if (/^\/apis\/[^/]+\/[^/]+$/.test(path)) return answer(200, { kind: 'APIResourceList', resources: [] })
    if (query.get('watch')) return this.#watch(request)
    const known = this.objects.get(path)
    switch (method) {
      case 'POST': {
        const created = `${path}/${(request.body as KubeObject).metadata?.name}`
        if (this.objects.has(created)) return failure(409, 'AlreadyExists', `${created} already exists`)
        return answer(201, this.put(created, request.body as KubeObject))
      }
      case 'PUT':
        return answer(200, this.put(path, request.body as KubeObject))
      case 'PATCH':
        // An apply makes what is not there.
        if (!known && !query.get('fieldManager')) return failure(404, 'NotFound', `${path} not found`)
        return answer(200, this.put(path, merge(known ?? {}, request.body as KubeObject) as KubeObject))
      case 'DELETE':
        return this.#delete(path, request.body as { preconditions?: { uid?: string } } | undefined)
      default: {
        if (known) return answer(200, known)
        if (!isCollection(path)) return failure(404, 'NotFound', `${path} not found`)
        const isSelected = selector(query.get('labelSelector') ?? '')
        const items = [...this.objects]
          .filter(([key, item]) => key.startsWith(`${path}/`) && isSelected(item.metadata.labels ?? {}))
          .map(([, item]) => item)
        return answer(200, { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: `${this.#version}` }, items })
      }
    }
  }

  /** Writes an object, as a controller would. */
  put(path: string, body: KubeObject): Stored<KubeObject> {
    const old = this.objects.get(path)
    const isSpecChange = JSON.stringify(specOf(old)) !== JSON.stringify(specOf(body))
    const stored = {
      ...body,
      metadata: {
        ...body.metadata,
        uid: old?.metadata.uid ?? `uid-${this.#version}`,
        resourceVersion: `${++this.#version}`,
        generation: (old?.metadata.generation ?? 0) + (isSpecChange ? 1 : 0),
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
    } as Stored<KubeObject>
    this.objects.set(path, stored)
    this.#publish(path, { type: old ? 'MODIFIED' : 'ADDED', object: stored })
    if (isSpecChange) queueMicrotask(() => this.react(path, stored))
    return stored
  }

  /** Changes status or metadata of an object that may be gone by now. */
  change(path: string, change: object): void {
    const known = this.objects.get(path)
    if (known) this.put(path, merge(known, change) as KubeObject)
  }

  async connect(request: ApiRequest): Promise<ApiConnection | ApiResponse> {
    this.requests.push(`CONNECT ${request.path}`)
    const port = this.ports.get(Number(request.query.get('ports') ?? request.query.get('port')))
    if (request.path.endsWith('/exec')) {
      return { type: 'process', process: localProcess(request.query.getAll('command')) }
    }
    if (port === undefined) return failure(500, 'InternalError', 'connection refused')
    return { type: 'port', stream: await localPort(port) }
  }

  #delete(path: string, body: { preconditions?: { uid?: string } } | undefined): ApiResponse {
    const known = this.objects.get(path)
    if (!known) return failure(404, 'NotFound', `${path} not found`)
    const uid = body?.preconditions?.uid
    if (uid !== undefined && uid !== known.metadata.uid) return failure(409, 'Conflict', 'the uid differs')
    this.objects.delete(path)
    this.#version += 1
    this.#publish(path, { type: 'DELETED', object: known })
    return answer(200, known)
  }

  #publish(path: string, event: WatchEvent): void {
    this.#log.push({ version: this.#version, path, event })
    for (const wake of this.#listeners) wake()
  }

  #watch({ path, query, signal }: ApiRequest): ApiResponse {
    const name = /metadata\.name=(.+)/.exec(query.get('fieldSelector') ?? '')?.[1]
    const from = Number(query.get('resourceVersion') ?? 0)
    const matches = (key: string) => (name ? key === `${path}/${name}` : key.startsWith(`${path}/`))
    const listeners = this.#listeners
    const log = this.#log
    async function* frames(): AsyncGenerator<WatchFrame> {
      let wake = () => {}
      const notify = () => wake()
      listeners.add(notify)
      signal?.addEventListener('abort', notify)
      try {
        for (let next = 0; !signal?.aborted; ) {
          const entry = log[next++]
          if (entry) {
            if (entry.version > from && matches(entry.path)) {
              const line = `${JSON.stringify(entry.event)}\n`
              yield { event: entry.event, line: () => line }
            }
            continue
          }
          next -= 1
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      } finally {
        listeners.delete(notify)
      }
    }
    return { status: 200, headers: {}, body: { type: 'watch', frames: frames() } }
  }
}

/** `name` and `name=value`, one of them. */
function selector(text: string): (labels: Record<string, string>) => boolean {
  const [name = '', value] = text.split('=')
  return (labels) => name === '' || (value === undefined ? name in labels : labels[name] === value)
}

function specOf(object: KubeObject | undefined): unknown {
  return (object as { spec?: unknown } | undefined)?.spec
}

function isCollection(path: string): boolean {
  return (
    /^\/(api\/v1|apis\/[^/]+\/[^/]+)(\/namespaces\/[^/]+)?\/[^/]+$/.test(path) && !/\/namespaces\/[^/]+$/.test(path)
  )
}

function merge(target: object, change: object): object {
  const merged: Record<string, unknown> = { ...target }
  for (const [key, value] of Object.entries(change)) {
    const old = merged[key]
    const isDeep = typeof value === 'object' && value !== null && !Array.isArray(value)
    merged[key] = isDeep && typeof old === 'object' && old !== null ? merge(old, value) : value
  }
  return merged
}

/** As a real kubelet's: closing the line leaves the process alone. */
function localProcess([program, ...args]: string[]): DuplexProcess {
  const child = spawn(program ?? '', args, { stdio: 'pipe' })
  child.stdin.on('error', () => {})
  let letGo: (exit: { exitCode: number; message: string }) => void = () => {}
  const lost = new Promise<{ exitCode: number; message: string }>((resolve) => {
    letGo = resolve
  })
  const exited = once(child, 'close').then(
    ([code, signal]) => ({ exitCode: (code as number | null) ?? (signal === 'SIGKILL' ? 137 : 143) }),
    (error: Error) => ({ exitCode: 127, message: error.message }),
  )
  return {
    stdout: child.stdout,
    stderr: child.stderr,
    writeStdin: async (chunk) => {
      if (!child.stdin.write(chunk)) await once(child.stdin, 'drain')
    },
    endStdin: () => child.stdin.end(),
    resize: () => {},
    kill: () => {
      child.stdout.destroy()
      child.stderr.destroy()
      letGo({ exitCode: 137, message: 'the line was closed' })
    },
    exited: Promise.race([exited, lost]),
  }
}

async function localPort(port: number): Promise<ByteStream> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return {
    [Symbol.asyncIterator]: () => socket[Symbol.asyncIterator](),
    write: async (chunk) => {
      if (!socket.write(chunk)) await once(socket, 'drain')
    },
    end: () => void socket.end(),
    destroy: (error) => void socket.destroy(error),
  }
}

function answer(status: number, value: object): ApiResponse {
  return { status, headers: {}, body: { type: 'object', value, json: () => JSON.stringify(value) } }
}

function failure(code: number, reason: string, message: string): ApiResponse {
  return answer(code, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code })
}
