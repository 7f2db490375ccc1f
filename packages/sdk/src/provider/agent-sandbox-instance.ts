import { Readable } from 'node:stream'
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

const sessionPrefix = 'session-'
const defaultPaneLines = 100
const paneBytes = 64 * 1024
const megabyte = 1024 * 1024

export interface InstanceIdentity {
  readonly id: string
  readonly projectId: string
  readonly status: InstanceStatus
  readonly idleTimeoutMinutes: number | undefined
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
    this.#lastActivity = new Date()
    const { exitCode, stdout, stderr } = await this.#handle.exec([cmd, ...args])
    return { exitCode, stdout, stderr }
  }

  /** `PermissionDenied` where the sandbox runs as a user that cannot become root, as it should. */
  async execAsRoot(cmd: string, args: readonly string[] = []): Promise<InstanceExecResult> {
    this.#lastActivity = new Date()
    const { exitCode, stdout, stderr } = await this.#handle.exec([cmd, ...args], { user: 'root' })
    return { exitCode, stdout, stderr }
  }

  async execStream(options: InstanceStreamOptions): Promise<InstanceStream> {
    this.#lastActivity = new Date()
    const { cmd, args = [], env, cwd, asRoot } = options
    const process = this.#handle.exec([cmd, ...args], { env, cwd, ...(asRoot ? { user: 'root' } : {}) })
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

  writeFile(path: string, content: string | Uint8Array, mode?: string): Promise<void> {
    this.#lastActivity = new Date()
    return this.#handle.files.write(path, content, mode === undefined ? {} : { mode })
  }

  /** A terminal that stays when its client goes. Creating one that is there changes nothing. */
  async createTmuxSession(name: string, command: readonly string[] = ['/bin/sh']): Promise<void> {
    await this.#handle.processes.start({ id: sessionId(name), argv: command, pty: { columns: 200, rows: 50 } })
  }

  async listTmuxSessions(): Promise<string[]> {
    const records = await this.#handle.processes.list()
    return records
      .filter(({ id, exit }) => id.startsWith(sessionPrefix) && !exit)
      .map(({ id }) => id.slice(sessionPrefix.length))
      .sort()
  }

  async killTmuxSession(name: string): Promise<void> {
    await this.#handle.processes.kill((await this.#session(name)).id, 'SIGKILL')
  }

  async sendKeysToTmux(name: string, keys: string): Promise<void> {
    this.#lastActivity = new Date()
    await this.#handle.processes.write((await this.#session(name)).id, keys)
  }

  /** The last lines the session has shown, as it wrote them. */
  async captureTmuxPane(name: string, lines: number = defaultPaneLines): Promise<string> {
    const record = await this.#record(name)
    const fromOffset = Math.max(0, record.output_bytes - paneBytes)
    const bytes = await this.#handle.processes.read(record.id, { fromOffset })
    return new TextDecoder().decode(bytes).split('\n').slice(-lines).join('\n')
  }

  async getMetrics(): Promise<InstanceMetrics> {
    const used = await this.#handle.metrics()
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
      memoryLimitMb: (used.memoryLimitBytes ?? 0) / megabyte,
      diskUsageMb: used.diskUsageBytes / megabyte,
      networkRxBytes: used.networkReceivedBytes,
      networkTxBytes: used.networkSentBytes,
      uptime: used.uptimeSeconds,
    }
  }

  /** Marks the sandbox as used: its shutdown time becomes now plus the idle time. */
  async touch(): Promise<void> {
    this.#lastActivity = new Date()
    const minutes = this.#identity.idleTimeoutMinutes
    if (minutes !== undefined) await this.#handle.extend(minutes * 60_000)
  }

  getLastActivity(): Date {
    return this.#lastActivity
  }

  async stop(): Promise<void> {
    this.#status = 'stopping'
    try {
      await this.#identity.stop()
      this.#status = 'stopped'
    } catch (error) {
      this.#status = 'error'
      throw error
    }
  }

  async #record(name: string) {
    const id = sessionId(name)
    const record = (await this.#handle.processes.list()).find((process) => process.id === id)
    if (!record) throw new SandboxError('NotFound', `there is no session "${name}"`)
    return record
  }

  async #session(name: string) {
    const record = await this.#record(name)
    if (record.exit) throw new SandboxError('ProcessExited', `session "${name}" has ended`)
    return record
  }
}

function sessionId(name: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$/.test(name))
    throw new SandboxError('Invalid', `"${name}" is not a session name`)
  return `${sessionPrefix}${name}`
}

function readable(output: ProcessOutput): Readable {
  const stream = Readable.from(output, { objectMode: false })
  // `wait` throws the reason. Without a listener an error event ends the program.
  stream.on('error', () => {})
  return stream
}
