import { AgentSandboxClient, type AgentSandboxClientOptions } from '../agent-sandbox-client.js'
import { SandboxError } from '../sandbox-error.js'
import { closeDeleted, type SandboxHandle, type SandboxMetrics } from '../sandbox-handle.js'
import { Commands } from './commands.js'
import { asE2b, NotFoundError } from './errors.js'
import { Filesystem } from './filesystem.js'
import { Pty } from './pty.js'
import {
  infoOf,
  marker,
  metadataKey,
  pausedOf,
  type SandboxInfo,
  type SandboxListOptions,
  SandboxPaginator,
} from './sandbox-list.js'

/** How the cluster is reached: options of `AgentSandboxClient`, or a client of the caller's, who also closes it. */
export interface SandboxConnectOptions {
  readonly client?: AgentSandboxClient
  readonly cluster?: AgentSandboxClientOptions
}

export interface SandboxCreateOptions extends SandboxConnectOptions {
  /** How long it lives; 300 s without it, as in E2B. */
  readonly timeoutMs?: number
  readonly envs?: Readonly<Record<string, string>>
  readonly metadata?: Readonly<Record<string, string>>
}

const defaultPool = 'default'
const defaultTimeoutMs = 300_000

/**
 * The surface of E2B's `Sandbox` on an Agent Sandbox cluster, so that code written for it moves by changing its import. A
 * template is the name of a SandboxWarmPool; a sandbox's id is the name of its SandboxClaim. What has no counterpart
 * (`getHost`: there is no public address) fails with `Unsupported` and says what to use instead.
 */
export class Sandbox implements AsyncDisposable {
  readonly sandboxId: string
  readonly commands: Commands
  readonly files: Filesystem
  readonly pty: Pty
  /** The same sandbox with everything this SDK can do. */
  readonly handle: SandboxHandle
  readonly #client: AgentSandboxClient
  readonly #isOurs: boolean
  #isKilled = false

  private constructor(sandboxId: string, handle: SandboxHandle, client: AgentSandboxClient, isOurs: boolean) {
    this.sandboxId = sandboxId
    this.handle = handle
    this.#client = client
    this.#isOurs = isOurs
    this.commands = new Commands(handle)
    this.files = new Filesystem(handle)
    this.pty = new Pty(handle)
  }

  static create(options?: SandboxCreateOptions): Promise<Sandbox>
  static create(template: string, options?: SandboxCreateOptions): Promise<Sandbox>
  static async create(first?: string | SandboxCreateOptions, second?: SandboxCreateOptions): Promise<Sandbox> {
    const pool = typeof first === 'string' ? first : defaultPool
    const options = (typeof first === 'string' ? second : first) ?? {}
    return withClient(options, async (client, isOurs) => {
      await using owned = await client.sandboxes.create({
        pool,
        ttlMs: options.timeoutMs ?? defaultTimeoutMs,
        labels: marker,
        annotations: { [metadataKey]: JSON.stringify(options.metadata ?? {}) },
        ...(options.envs ? { env: options.envs } : {}),
      })
      const id = owned.claimName ?? owned.name
      const handle = await client.sandboxes.get(id)
      // Again, so that this handle knows what to bind after a pause. A runtime that takes none has them in its pod.
      if (options.envs) await handle.bindEnv(options.envs).catch(unlessUnsupported)
      // From here on it lives until its time is over or `kill`; one that the caller never got ends with this scope.
      owned.detach()
      return new Sandbox(id, handle, client, isOurs)
    })
  }

  /** A sandbox that exists, by its id; its life is extended where `timeoutMs` is given. */
  static async connect(
    sandboxId: string,
    options: SandboxConnectOptions & { timeoutMs?: number } = {},
  ): Promise<Sandbox> {
    return withClient(options, async (client, isOurs) => {
      const handle = await client.sandboxes.get(sandboxId)
      if ((await handle.status()).phase === 'Suspended') await handle.resume()
      if (options.timeoutMs) await handle.extend(options.timeoutMs)
      return new Sandbox(sandboxId, handle, client, isOurs)
    })
  }

  /**
   * Every sandbox made through this facade, with `query` those that fit it: page by page with `nextItems` as in E2B's second
   * version, or all of them with `await` as in its first.
   */
  static list(options: SandboxConnectOptions & SandboxListOptions = {}): SandboxPaginator {
    return new SandboxPaginator(options, (call) => withOwnClient(options, call))
  }

  static async getInfo(sandboxId: string, options: SandboxConnectOptions = {}): Promise<SandboxInfo> {
    return withOwnClient(options, async (client) => {
      const claim = await client.claims.find(sandboxId)
      if (!claim) throw new SandboxError('NotFound', `there is no sandbox "${sandboxId}"`)
      return infoOf(claim, (await pausedOf(client)).has(claim.status?.sandbox?.name ?? ''))
    })
  }

  /** It ends this long from now. */
  static async setTimeout(sandboxId: string, timeoutMs: number, options: SandboxConnectOptions = {}): Promise<void> {
    await withOwnClient(options, async (client) => {
      const handle = await client.sandboxes.get(sandboxId)
      await handle.extend(timeoutMs).finally(() => handle.detach())
    })
  }

  /** Whether there was one to kill. */
  static async kill(sandboxId: string, options: SandboxConnectOptions = {}): Promise<boolean> {
    return withOwnClient(options, async (client) => {
      if (!(await client.claims.find(sandboxId))) return false
      await client.claims.delete(sandboxId)
      return true
    })
  }

  /** Ends it; whether there was one to end. */
  async kill(): Promise<boolean> {
    if (this.#isKilled) return false
    const killed = await Sandbox.kill(this.sandboxId, { client: this.#client })
    this.#isKilled = true
    closeDeleted(this.handle)
    await this.close()
    return killed
  }

  /** Lets go of the connection; the sandbox lives on. */
  async close(): Promise<void> {
    this.handle.detach()
    if (this.#isOurs) await this.#client.close()
  }

  /** It ends this long from now. */
  async setTimeout(timeoutMs: number): Promise<void> {
    await this.#call(() => this.handle.extend(timeoutMs))
  }

  async isRunning(): Promise<boolean> {
    if (this.#isKilled) return false
    try {
      return (await this.handle.status()).phase === 'Running'
    } catch (error) {
      if (error instanceof SandboxError && error.code === 'NotFound') return false
      throw error
    }
  }

  getInfo(): Promise<SandboxInfo> {
    return this.#call(() => Sandbox.getInfo(this.sandboxId, { client: this.#client }))
  }

  getMetrics(): Promise<SandboxMetrics> {
    return this.#call(() => this.handle.metrics())
  }

  /** Stops the pod and keeps its volumes; `connect` or `resume` start it again. */
  async pause(): Promise<void> {
    await this.#call(() => this.handle.suspend())
  }

  /** With the variables that were bound through this object; the pod is a new one. */
  async resume(): Promise<void> {
    await this.#call(() => this.handle.resume())
  }

  getHost(port: number): never {
    throw new SandboxError('Unsupported', `port ${port} of sandbox "${this.sandboxId}" has no public address`, {
      hint: `Use handle.ports.forward(${port}) for a local one, or handle.ports.fetch(${port}, path) for a request.`,
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }

  /** After `kill` the client is closed too, which is not what the caller needs to know. */
  #call<T>(call: () => PromiseLike<T>): Promise<T> {
    return asE2b(async () => {
      if (this.#isKilled) throw new NotFoundError('NotFound', `sandbox "${this.sandboxId}" was killed by this program`)
      return call()
    })
  }
}

function unlessUnsupported(error: unknown): void {
  if (!(error instanceof SandboxError && error.code === 'Unsupported')) throw error
}

async function withClient<T>(
  options: SandboxConnectOptions,
  call: (client: AgentSandboxClient, isOurs: boolean) => Promise<T>,
): Promise<T> {
  const client = options.client ?? new AgentSandboxClient(options.cluster)
  try {
    return await asE2b(() => call(client, !options.client))
  } catch (error) {
    if (!options.client) await client.close()
    throw error
  }
}

async function withOwnClient<T>(
  options: SandboxConnectOptions,
  call: (client: AgentSandboxClient) => Promise<T>,
): Promise<T> {
  const client = options.client ?? new AgentSandboxClient(options.cluster)
  try {
    return await asE2b(() => call(client))
  } finally {
    if (!options.client) await client.close()
  }
}
