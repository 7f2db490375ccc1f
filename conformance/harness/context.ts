import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import type { Answer, CallOptions, HttpClient } from './http-client.js'
import type { KubeBody } from './kube-body.js'
import {
  type BinaryFact,
  kubectlEnvironment,
  kubectlFact,
  kubectlPath,
  newHome,
  type RunOptions,
  type RunResult,
  runProgram,
} from './kubectl.js'
import type { ServerUnderTest } from './server-under-test.js'
import { WatchStream } from './watch-stream.js'

export const mergePatch = 'application/merge-patch+json'
export const jsonPatch = 'application/json-patch+json'
export const strategicPatch = 'application/strategic-merge-patch+json'
export const applyPatch = 'application/apply-patch+yaml'

/** What one check works with: the server, names of its own, and everything it must not leave behind. */
export class Context {
  private namespaceName: Promise<string> | undefined
  private home: string | undefined
  private readonly cleanups: (() => void | Promise<void>)[] = []
  private readonly used = new Map<string, BinaryFact>()

  constructor(
    readonly server: ServerUnderTest,
    readonly http: HttpClient,
  ) {}

  get isEmbedded(): boolean {
    return this.server.kind === 'embedded'
  }

  /** A namespace of this check alone. */
  ns(): Promise<string> {
    this.namespaceName ??= this.newNamespace()
    return this.namespaceName
  }

  async newNamespace(): Promise<string> {
    const name = this.unique('check')
    ;(await this.post('/api/v1/namespaces', { metadata: { name } })).is(201)
    this.after(async () => {
      await this.del(`/api/v1/namespaces/${name}`)
    })
    return name
  }

  unique(prefix: string): string {
    return `${prefix}-${randomBytes(4).toString('hex')}`
  }

  /** Path of a core collection in the check's namespace, or of one object in it. */
  async core(resource: string, name?: string): Promise<string> {
    return `/api/v1/namespaces/${await this.ns()}/${resource}${name ? `/${name}` : ''}`
  }

  async group(groupVersion: string, resource: string, name?: string): Promise<string> {
    return `/apis/${groupVersion}/namespaces/${await this.ns()}/${resource}${name ? `/${name}` : ''}`
  }

  call(method: string, path: string, options?: CallOptions): Promise<Answer> {
    return this.http.call(method, path, options)
  }
  get(path: string, options?: CallOptions): Promise<Answer> {
    return this.call('GET', path, options)
  }
  post(path: string, body: CallOptions['body'], options?: CallOptions): Promise<Answer> {
    return this.call('POST', path, { ...options, ...(body === undefined ? {} : { body }) })
  }
  put(path: string, body: object, options?: CallOptions): Promise<Answer> {
    return this.call('PUT', path, { ...options, body })
  }
  patch(path: string, contentType: string, body: object | string): Promise<Answer> {
    return this.call('PATCH', path, { body, contentType })
  }
  del(path: string, body?: object): Promise<Answer> {
    return this.call('DELETE', path, body ? { body } : {})
  }

  /** Creates an object and answers it as stored. */
  async create(path: string, body: object): Promise<KubeBody> {
    return (await this.post(path, body)).is(201)
  }

  /** Opens a watch; resolves when its headers are there. */
  async watch(path: string, options: CallOptions = {}): Promise<WatchStream> {
    const response = await this.http.open('GET', path, options)
    const stream = new WatchStream(response, `GET ${path}`)
    this.after(() => stream.close())
    if (response.statusCode !== 200) throw new Error(`GET ${path}: ${response.statusCode} instead of a watch`)
    return stream
  }

  /** Asks until the answer is not undefined; throws what it last heard after the deadline. */
  async eventually<T>(what: string, ask: () => Promise<T | undefined | false>, timeoutMs = 240_000): Promise<T> {
    const deadline = Date.now() + timeoutMs
    let last: unknown
    do {
      try {
        const value = await ask()
        if (value !== undefined && value !== false) return value
        last = undefined
      } catch (error) {
        last = error
      }
      await new Promise((resolve) => setTimeout(resolve, 25))
    } while (Date.now() < deadline)
    throw new Error(`${what}: not within ${timeoutMs} ms`, { cause: last })
  }

  /** Waits until the object is gone. */
  async gone(path: string, timeoutMs?: number): Promise<void> {
    await this.eventually(`${path} gone`, async () => (await this.get(path)).status === 404, timeoutMs)
  }

  async kubectl(version: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    const env = { ...this.kubectlEnv(), ...options.env }
    this.usesBinary(await kubectlFact(version))
    return runProgram(kubectlPath(version), args, { ...options, env })
  }

  /** Names a program that had a part in the verdict: result files carry its version and hash. */
  usesBinary(binary: BinaryFact): void {
    this.used.set(`${binary.name} ${binary.version}`, binary)
  }

  get binaries(): readonly BinaryFact[] {
    return [...this.used.values()]
  }

  /** Runs kubectl in the check's namespace and insists on success. */
  async ok(version: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
    const result = await this.kubectl(version, ['-n', await this.ns(), ...args], options)
    if (result.code !== 0)
      throw new Error(`kubectl ${version} ${args.join(' ')}: exit ${result.code}\n${result.out}${result.err}`)
    return result.out
  }

  kubectlEnv(): NodeJS.ProcessEnv {
    return kubectlEnvironment(this.server.kubeconfig, this.directory())
  }

  /** A directory of this check alone. */
  directory(): string {
    if (!this.home) {
      const home = newHome()
      this.home = home
      this.after(() => rmSync(home, { recursive: true, force: true }))
    }
    return this.home
  }

  after(cleanup: () => void | Promise<void>): void {
    this.cleanups.push(cleanup)
  }

  async close(): Promise<void> {
    for (const cleanup of this.cleanups.reverse()) {
      try {
        await cleanup()
      } catch {
        // The check's own verdict matters more than what could not be tidied behind it.
      }
    }
  }
}
