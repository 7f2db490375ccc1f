import { randomUUID } from 'node:crypto'
import type { KubeClient, ObjectRef } from '@corral/kube'
import type { TerminalSize } from '@corral/protocol'
import { type Event, Events, type Sandbox, SandboxClaims, Sandboxes, type Stored } from '@corral/resources'
import { byteLimit } from './byte-limit.js'
import type { InNamespace, ResourceCollection } from './resource-collection.js'
import type { RuntimeKind } from './runtime/sandbox-runtime.js'
import type { SandboxConnection } from './sandbox-connection.js'
import { SandboxError, translated, translatedStream } from './sandbox-error.js'
import type { ExecProcess, ExecStreamOptions } from './sandbox-exec.js'
import { SandboxFiles } from './sandbox-files.js'
import { SandboxGit } from './sandbox-git.js'
import type { SandboxLink } from './sandbox-link.js'
import { podNameOf, type SandboxRef } from './sandbox-object.js'
import { SandboxPorts } from './sandbox-ports.js'
import { type ProcessLimits, SandboxProcess } from './sandbox-process.js'
import { SandboxProcesses } from './sandbox-processes.js'
import { type SandboxStatusView, statusOf } from './sandbox-status.js'
import { executableOf, type Telemetry } from './telemetry.js'
import { timeLimit } from './time-limit.js'
import type { WaitOptions } from './wait-for.js'

export interface ExecCommandOptions extends ProcessLimits {
  readonly cwd?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  /** `true`: written to with `write` and `end`. Text or bytes: all there is. Absent: end of file at once. */
  readonly stdin?: boolean | string | Uint8Array | undefined
  /** In a terminal: one output stream, standard input open unless `stdin` is text or bytes, which are typed into it. */
  readonly pty?: boolean | TerminalSize | undefined
  /** A name or number of the sandbox's own users. */
  readonly user?: string | undefined
  /** Goes on whatever becomes of this client and of the daemon; `processes.attach(await process.id)` finds it again. */
  readonly background?: boolean | undefined
}

const lineFeed = 10

export interface SandboxMetrics {
  readonly cpuUsageSeconds: number
  readonly memoryUsageBytes: number
  readonly memoryLimitBytes: number | undefined
  readonly diskUsageBytes: number
  readonly diskTotalBytes: number
  readonly networkReceivedBytes: number
  readonly networkSentBytes: number
  readonly uptimeSeconds: number
  readonly processes: number
}

/** What a handle asks of the collection it came from. */
export interface SandboxCalls {
  readonly objects: Pick<ResourceCollection<Sandbox>, 'get'>
  execStream(sandbox: SandboxRef, command: readonly string[], options?: ExecStreamOptions): Promise<ExecProcess>
  connect(sandbox: SandboxRef, options?: { signal?: AbortSignal | undefined }): Promise<SandboxConnection>
  podOf(sandbox: SandboxRef, options?: { signal?: AbortSignal | undefined }): Promise<Required<ObjectRef>>
  waitForReady(name: string, options?: WaitOptions & InNamespace): Promise<Stored<Sandbox>>
  pause(name: string, options?: WaitOptions & InNamespace): Promise<void>
  resume(name: string, options?: WaitOptions & InNamespace): Promise<void>
}

/** What a handle stands on. */
export interface HandleParts {
  readonly sandboxes: SandboxCalls
  readonly kube: () => Promise<KubeClient>
  readonly link: SandboxLink
  readonly telemetry: Telemetry
}

/** Ends a handle whose sandbox this program has deleted by another way: its calls then say that it is gone. */
export let closeDeleted: (handle: SandboxHandle) => void

/** A sandbox that this handle does not own: its names and a connection. Closing the handle leaves the sandbox running. */
export class SandboxHandle {
  readonly name: string
  readonly namespace: string
  /** The claim it came from, where it is known. */
  readonly claimName: string | undefined
  readonly files: SandboxFiles
  readonly processes: SandboxProcesses
  readonly ports: SandboxPorts
  readonly git: SandboxGit
  readonly #parts: HandleParts
  #bound: Readonly<Record<string, string>> | undefined

  static {
    closeDeleted = (handle) => handle.#parts.link.close('deleted')
  }

  constructor(parts: HandleParts, ref: { name: string; namespace: string; claimName?: string | undefined }) {
    this.name = ref.name
    this.namespace = ref.namespace
    this.claimName = ref.claimName
    this.#parts = parts
    this.files = new SandboxFiles(parts.link)
    this.processes = new SandboxProcesses(parts.link)
    this.ports = new SandboxPorts(parts.link, parts.kube, ref.namespace)
    this.git = new SandboxGit(this.files, (argv, options) => this.exec(argv, options))
  }

  /** What answers inside. */
  async runtime(options: { signal?: AbortSignal } = {}): Promise<RuntimeKind> {
    return (await translated(() => this.#parts.link.runtime(options.signal), options.signal)).kind
  }

  /** The object as the server has it now. */
  object(options: { signal?: AbortSignal } = {}): Promise<Stored<Sandbox>> {
    return this.#parts.sandboxes.objects.get(this.name, { ...options, namespace: this.namespace })
  }

  /**
   * Starts a command, given as its arguments. It runs once: a cut connection is taken up again where it broke, a command is
   * never sent twice. Await the answer for the result, or iterate it for the output.
   */
  exec(argv: readonly string[], options: ExecCommandOptions = {}): SandboxProcess {
    checkArgv(argv)
    timeLimit(options.timeoutMs)
    byteLimit(options.maxOutputBytes)
    checkStdin(options.stdin)
    const { cwd, env, user, stdin, pty } = options
    const input =
      stdin === true ? 'open' : typeof stdin === 'string' ? new TextEncoder().encode(stdin) : stdin || undefined
    const size = pty === true ? { columns: 80, rows: 24 } : pty || undefined
    const spec = { argv, cwd, env, user, pty: size, stdin: input ?? (size ? ('open' as const) : undefined) }
    // More than a request should carry, and what is for a terminal, is written to the running command instead.
    const isWritten = spec.stdin instanceof Uint8Array && (size !== undefined || spec.stdin.length > 512 * 1024)
    const attributes = { 'sandbox.name': this.name, 'process.executable.name': executableOf(argv) }
    const started = translated(
      () =>
        this.#parts.telemetry.span('sandbox.exec', attributes, async () => {
          const sent = isWritten ? { ...spec, stdin: 'open' as const } : spec
          if (!options.background) {
            const runtime = await this.#parts.link.runtime(options.signal)
            options.signal?.throwIfAborted()
            return runtime.start(sent)
          }
          const runtime = await this.#parts.link.corral('a background process', options.signal)
          options.signal?.throwIfAborted()
          const id = `background-${randomUUID()}`
          await runtime.startDurable(id, sent)
          return runtime.attach(id, 0)
        }),
      options.signal,
    )
    started.catch(() => {})
    const process = new SandboxProcess(argv, started, options)
    // A command that stops reading says so by its own end.
    if (isWritten) writeAll(process, input as Uint8Array, size !== undefined).catch(() => {})
    return process
  }

  /** A script for the sandbox's `sh`. */
  shell(script: string, options: ExecCommandOptions = {}): SandboxProcess {
    return this.exec(['/bin/sh', '-c', script], options)
  }

  /** A shell in a terminal, bash where there is one. */
  terminal(options: ExecCommandOptions & { size?: TerminalSize } = {}): SandboxProcess {
    const { size = { columns: 80, rows: 24 }, ...rest } = options
    const script = 'if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi'
    return this.exec(['/bin/sh', '-c', script], { ...rest, pty: size })
  }

  /** The kubelet's exec, for a container without a runtime. */
  execStream(command: readonly string[], options: ExecStreamOptions = {}): Promise<ExecProcess> {
    return this.#parts.sandboxes.execStream(this, command, options)
  }

  /** A connection to the daemon inside, apart from the handle's own, which the caller closes. */
  connect(options: { signal?: AbortSignal } = {}): Promise<SandboxConnection> {
    return this.#parts.sandboxes.connect(this, options)
  }

  async status(options: { signal?: AbortSignal } = {}): Promise<SandboxStatusView> {
    const object = await this.object(options)
    return statusOf(object, podNameOf(object))
  }

  /** What the cluster has recorded about the sandbox, its claim and its pod, oldest first. */
  async events(options: { signal?: AbortSignal } = {}): Promise<Stored<Event>[]> {
    return translated(async () => {
      const names = new Set([this.name, this.claimName, podNameOf(await this.object(options))])
      const found: Stored<Event>[] = []
      for await (const event of (await this.#parts.kube()).items(Events, { namespace: this.namespace, ...options })) {
        if (names.has(event.involvedObject?.name)) found.push(event)
      }
      const time = (event: Stored<Event>) =>
        Date.parse(String(event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp))
      return found.sort((a, b) => time(a) - time(b))
    }, options.signal)
  }

  /** What the sandbox uses now. */
  async metrics(options: { signal?: AbortSignal } = {}): Promise<SandboxMetrics> {
    return translated(async () => {
      const record = await (await this.#parts.link.corral('usage', options.signal)).metrics(options)
      return {
        cpuUsageSeconds: record.cpu_usage_seconds,
        memoryUsageBytes: record.memory_usage_bytes,
        memoryLimitBytes: record.memory_limit_bytes,
        diskUsageBytes: record.disk_usage_bytes,
        diskTotalBytes: record.disk_total_bytes,
        networkReceivedBytes: record.network_received_bytes,
        networkSentBytes: record.network_sent_bytes,
        uptimeSeconds: record.uptime_seconds,
        processes: record.processes,
      }
    }, options.signal)
  }

  /** Variables for every command from now on, instead of those bound before. Needs our daemon inside. */
  bindEnv(env: Readonly<Record<string, string>>, options: { signal?: AbortSignal } = {}): Promise<void> {
    return translated(async () => {
      const runtime = await this.#parts.link.corral('environment after the start', options.signal)
      await runtime.bindEnv(env, options)
      this.#bound = { ...env }
    }, options.signal)
  }

  /** What the container has written. */
  logs(
    options: { follow?: boolean; tailLines?: number; container?: string; signal?: AbortSignal } = {},
  ): AsyncIterable<Uint8Array> {
    const parts = this.#parts
    const self = this
    return translatedStream(async function* () {
      const kube = await parts.kube()
      const pod = await parts.sandboxes.podOf(self, options)
      yield* kube.logs(pod, options)
    }, options.signal)
  }

  waitForReady(options: WaitOptions = {}): Promise<Stored<Sandbox>> {
    return this.#parts.sandboxes.waitForReady(this.name, { ...options, namespace: this.namespace })
  }

  /** Stops the pod and keeps the volumes; resolves when it has stopped. */
  async suspend(options: WaitOptions = {}): Promise<void> {
    await this.#parts.sandboxes.pause(this.name, { ...options, namespace: this.namespace })
    this.#parts.link.reset(this.#parts.link.suspended())
  }

  /**
   * Starts a suspended sandbox; resolves when it is ready again. Its pod is a new one: variables that this handle has bound
   * are bound again, those of another handle are not.
   */
  async resume(options: WaitOptions = {}): Promise<void> {
    await this.#parts.sandboxes.resume(this.name, { ...options, namespace: this.namespace })
    this.#parts.link.reset()
    if (this.#bound) await this.bindEnv(this.#bound, options.signal ? { signal: options.signal } : {})
  }

  /** The same as `suspend`. */
  pause(options: WaitOptions = {}): Promise<void> {
    return this.suspend(options)
  }

  /** Moves the time at which the cluster ends the sandbox to `ttlMs` from now. */
  async extend(ttlMs: number, options: { signal?: AbortSignal } = {}): Promise<Date> {
    const shutdownTime = shutdownAfter(ttlMs)
    return translated(async () => {
      const kube = await this.#parts.kube()
      const time = toSeconds(shutdownTime)
      const claim = this.claimName ?? claimOf(await this.object(options))
      const ref = { name: claim ?? this.name, namespace: this.namespace }
      const change = { shutdownTime: time, shutdownPolicy: 'Delete' }
      const body = { spec: claim ? { lifecycle: change } : change }
      if (claim) await kube.patch(SandboxClaims, ref, { type: 'merge', body }, options)
      else await kube.patch(Sandboxes, ref, { type: 'merge', body }, options)
      return shutdownTime
    }, options.signal)
  }

  /** Lets go: drops the connection and leaves the sandbox as it is. The handle cannot be used afterwards. */
  detach(): void {
    this.#parts.link.close()
  }
}

/** A sandbox we made: the end of its scope deletes it. */
export class OwnedSandbox extends SandboxHandle implements AsyncDisposable {
  readonly #remove: (signal?: AbortSignal) => Promise<void>
  readonly #link: SandboxLink
  #isDetached = false

  constructor(
    parts: HandleParts,
    ref: { name: string; namespace: string; claimName?: string | undefined },
    remove: (signal?: AbortSignal) => Promise<void>,
  ) {
    super(parts, ref)
    this.#link = parts.link
    this.#remove = remove
  }

  /** Deletes it, with the claim it came from. Absent is done. */
  async delete(options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.#remove(options.signal)
    this.#isDetached = true
    this.#link.close('deleted')
  }

  /** Lets go without deleting: the end of the scope leaves it running. */
  override detach(): void {
    this.#isDetached = true
    super.detach()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isDetached) await this.delete({ signal: AbortSignal.timeout(30_000) })
  }
}

function checkArgv(argv: readonly string[]): void {
  const words = typeof argv === 'string' ? ': a script for a shell goes to shell()' : ''
  if (!Array.isArray(argv)) throw new SandboxError('Invalid', `a command is an array of arguments${words}`)
  if (argv.length === 0) throw new SandboxError('Invalid', 'a command needs at least one argument')
  if (argv.some((argument) => typeof argument !== 'string'))
    throw new SandboxError('Invalid', 'the arguments of a command are strings')
  if (argv[0] === '') throw new SandboxError('Invalid', 'the program of a command has no name')
}

async function writeAll(process: SandboxProcess, input: Uint8Array, isTerminal: boolean): Promise<void> {
  await process.write(input)
  // In the middle of a line, a terminal's end of file ends no more than that line.
  if (isTerminal && input.length > 0 && input.at(-1) !== lineFeed) await process.end()
  await process.end()
}

function checkStdin(stdin: unknown): void {
  const isInput = stdin === undefined || stdin === null || ['boolean', 'string'].includes(typeof stdin)
  if (!isInput && !(stdin instanceof Uint8Array))
    throw new SandboxError('Invalid', 'stdin is text, bytes, or true for one that is written to later')
}

function claimOf(sandbox: Stored<Sandbox>): string | undefined {
  return sandbox.metadata.ownerReferences?.find((owner) => owner.kind === 'SandboxClaim')?.name
}

/** The time a lifetime ends; `Invalid` where it is no lifetime. */
export function shutdownAfter(ttlMs: number, now: number = Date.now()): Date {
  const time = new Date(now + ttlMs)
  if (typeof ttlMs !== 'number' || !(ttlMs > 0) || Number.isNaN(time.getTime())) {
    throw new SandboxError('Invalid', `a lifetime of ${ttlMs} ms cannot be: it must be a positive number`)
  }
  return time
}

/** As Kubernetes writes times, rounded up. */
export function toSeconds(time: Date): string {
  return new Date(Math.ceil(time.getTime() / 1000) * 1000).toISOString().replace(/\.\d+Z$/, 'Z')
}
