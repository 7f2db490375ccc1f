import { Readable } from 'node:stream'
import type { ProcessRecord } from '@corral/protocol'
import type { ProcessOutput } from '../process-output.js'
import { SandboxError } from '../sandbox-error.js'
import type { SandboxHandle } from '../sandbox-handle.js'
import type {
  InstanceExecResult,
  InstanceMetrics,
  InstanceStatus,
  InstanceStream,
  InstanceStreamOptions,
  SandboxInstance,
} from './sandbox-provider.js'

const defaultPaneLines = 100
const paneBytes = 64 * 1024
const megabyte = 1024 * 1024

export interface InstanceIdentity {
  readonly id: string
  readonly projectId: string
  readonly status: InstanceStatus
  readonly idleTimeoutMinutes: number | undefined
  /** What the pod may use, for sandboxes that cannot read it themselves. */
  readonly memoryLimitBytes: number | undefined
  /** Ends the sandbox and tells who listens. */
  readonly stop: () => Promise<void>
}

/** A sandbox of the Agent Sandbox API as providers hand it out. */
export class AgentSandboxInstance implements SandboxInstance {
  readonly id: string
  readonly projectId: string
  readonly containerId: string
  readonly #handle: SandboxHandle
  readonly #identity: InstanceIdentity
  #status: InstanceStatus
  #lastActivity = new Date()
  #lastCpu: { atMs: number; seconds: number } | undefined

  constructor(handle: SandboxHandle, identity: InstanceIdentity) {
    this.id = identity.id
    this.projectId = identity.projectId
    this.containerId = handle.name
    this.#handle = handle
    this.#identity = identity
    this.#status = identity.status
  }

  get status(): InstanceStatus {
    return this.#status
  }

  async exec(cmd: string, args: readonly string[] = []): Promise<InstanceExecResult> {
    const { exitCode, stdout, stderr } = await this.#used().exec(argvOf(cmd, args))
    return { exitCode, stdout, stderr }
  }

  /** `PermissionDenied` where the sandbox runs as a user that cannot become root, as it should. */
  async execAsRoot(cmd: string, args: readonly string[] = []): Promise<InstanceExecResult> {
    const { exitCode, stdout, stderr } = await this.#used().exec(argvOf(cmd, args), { user: 'root' })
    return { exitCode, stdout, stderr }
  }

  async execStream(options: InstanceStreamOptions): Promise<InstanceStream> {
    if (!options) throw new SandboxError('Invalid', 'execStream needs a command: { cmd, args }')
    const { cmd, args = [], env, cwd, asRoot } = options
    const process = this.#used().exec(argvOf(cmd, args), { env, cwd, ...(asRoot ? { user: 'root' } : {}) })
    // A command that cannot start is told here, not in the middle of a stream.
    await process.id
    const streams = [readable(process.stdout), readable(process.stderr)] as const
    return {
      stdout: streams[0],
      stderr: streams[1],
      wait: async () => ({ exitCode: await process.exitCode }),
      kill: () => process.kill('SIGKILL'),
    }
  }

  async writeFile(path: string, content: string | Uint8Array, mode?: string): Promise<void> {
    await this.#used().files.write(path, content, mode === undefined ? {} : { mode })
  }

  /** A terminal that stays when its client goes. Creating one that is there changes nothing; one that has ended starts anew. */
  async createTmuxSession(name: string, command: readonly string[] = ['/bin/sh']): Promise<void> {
    checkSessionName(name)
    const { processes } = this.#used()
    const last = (await this.#sessions()).get(name)
    if (last && !last.record.exit) return
    const id = sessionId(name, (last?.life ?? 0) + 1)
    await processes.start({ id, argv: command, pty: { columns: 200, rows: 50 } })
  }

  async listTmuxSessions(): Promise<string[]> {
    const running = [...(await this.#sessions())].filter(([, { record }]) => !record.exit)
    return running.map(([name]) => name).sort()
  }

  async killTmuxSession(name: string): Promise<void> {
    const { id } = await this.#session(name)
    await this.#used().processes.kill(id, 'SIGKILL')
  }

  async sendKeysToTmux(name: string, keys: string): Promise<void> {
    const { id } = await this.#session(name)
    await this.#used().processes.write(id, keys)
  }

  /** The last lines the session has shown, as it wrote them. */
  async captureTmuxPane(name: string, lines: number = defaultPaneLines): Promise<string> {
    if (!(Number.isSafeInteger(lines) && lines > 0)) throw new SandboxError('Invalid', `${lines} is no number of lines`)
    const record = await this.#record(name)
    const fromOffset = Math.max(0, record.output_bytes - paneBytes)
    const bytes = await this.#used().processes.read(record.id, { fromOffset })
    return new TextDecoder().decode(bytes).split('\n').slice(-lines).join('\n')
  }

  async getMetrics(): Promise<InstanceMetrics> {
    const used = await this.#running().metrics()
    const atMs = performance.now()
    const last = this.#lastCpu
    this.#lastCpu = { atMs, seconds: used.cpuUsageSeconds }
    // Before there are two looks, the mean since the start is the best that is known.
    const [seconds, overSeconds] = last
      ? [used.cpuUsageSeconds - last.seconds, (atMs - last.atMs) / 1000]
      : [used.cpuUsageSeconds, used.uptimeSeconds]
    return {
      cpuUsagePercent: overSeconds > 0 ? (100 * seconds) / overSeconds : 0,
      memoryUsageMb: used.memoryUsageBytes / megabyte,
      memoryLimitMb: (used.memoryLimitBytes ?? this.#identity.memoryLimitBytes ?? 0) / megabyte,
      diskUsageMb: used.diskUsageBytes / megabyte,
      networkRxBytes: used.networkReceivedBytes,
      networkTxBytes: used.networkSentBytes,
      uptime: used.uptimeSeconds,
    }
  }

  /** Marks the sandbox as used: its shutdown time becomes now plus the idle time. */
  async touch(): Promise<void> {
    const handle = this.#used()
    const minutes = this.#identity.idleTimeoutMinutes
    if (minutes !== undefined) await handle.extend(minutes * 60_000)
  }

  getLastActivity(): Date {
    return this.#lastActivity
  }

  /** Repeating it is done at once. */
  async stop(): Promise<void> {
    if (this.#status === 'stopped') return
    this.#status = 'stopping'
    try {
      await this.#identity.stop()
      this.#status = 'stopped'
    } catch (error) {
      this.#status = 'error'
      throw error
    }
  }

  #running(): SandboxHandle {
    if (this.#status !== 'stopped') return this.#handle
    throw new SandboxError('SandboxDeleted', `sandbox "${this.id}" of project "${this.projectId}" was stopped`)
  }

  #used(): SandboxHandle {
    this.#lastActivity = new Date()
    return this.#running()
  }

  /** The last life of every session there was. */
  async #sessions(): Promise<Map<string, { life: number; record: ProcessRecord }>> {
    const sessions = new Map<string, { life: number; record: ProcessRecord }>()
    for (const record of await this.#running().processes.list()) {
      const [, life = '1', name] = sessionIdPattern.exec(record.id) ?? []
      if (name !== undefined && Number(life) > (sessions.get(name)?.life ?? 0))
        sessions.set(name, { life: Number(life), record })
    }
    return sessions
  }

  async #record(name: string) {
    checkSessionName(name)
    const record = (await this.#sessions()).get(name)?.record
    if (!record) throw new SandboxError('NotFound', `there is no session "${name}"`)
    return record
  }

  async #session(name: string) {
    const record = await this.#record(name)
    if (record.exit) throw new SandboxError('ProcessExited', `session "${name}" has ended`)
    return record
  }
}

const sessionIdPattern = /^session(?:\.(\d+))?-(.+)$/

/** The id of a process is used once: a session that starts anew counts its lives. */
function sessionId(name: string, life: number): string {
  return life === 1 ? `session-${name}` : `session.${life}-${name}`
}

function checkSessionName(name: string): void {
  // `test` alone would take undefined for the session "undefined".
  if (typeof name !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$/.test(name))
    throw new SandboxError('Invalid', `"${name}" is not a session name`)
}

function argvOf(cmd: string, args: readonly string[]): string[] {
  // Spread, a text would become an argument per letter.
  if (!Array.isArray(args)) throw new SandboxError('Invalid', 'the arguments of a command are an array')
  return [cmd, ...args]
}

function readable(output: ProcessOutput): Readable {
  const stream = Readable.from(output, { objectMode: false })
  // `wait` throws the reason. Without a listener an error event ends the program.
  stream.on('error', () => {})
  return stream
}
