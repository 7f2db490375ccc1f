import type { SandboxHandle } from '../sandbox-handle.js'
import type { SandboxProcess } from '../sandbox-process.js'
import { asE2b, NotFoundError } from './errors.js'

export interface PtyOptions {
  readonly cols: number
  readonly rows: number
  readonly onData: (data: Uint8Array) => void | Promise<void>
  readonly cwd?: string
  readonly envs?: Readonly<Record<string, string>>
  readonly user?: string
  /** Ends the shell; none without it. */
  readonly timeoutMs?: number
}

export interface PtyHandle {
  readonly pid: number
  /** Its exit code, once the shell has ended and everything was handed to `onData`. */
  wait(): Promise<{ exitCode: number }>
  kill(): Promise<boolean>
}

/** `sandbox.pty`: shells in terminals. */
export class Pty {
  readonly #sandbox: SandboxHandle
  readonly #open = new Map<number, SandboxProcess>()

  constructor(sandbox: SandboxHandle) {
    this.#sandbox = sandbox
  }

  async create(options: PtyOptions): Promise<PtyHandle> {
    const { cols, rows, onData, cwd, envs, user, timeoutMs } = options
    const size = { columns: cols, rows }
    const process = this.#sandbox.terminal({ size, cwd, env: envs, user, ...(timeoutMs ? { timeoutMs } : {}) })
    const id = await asE2b(() => process.id)
    const records = await asE2b(() => this.#sandbox.processes.list())
    const pid = records.find((record) => record.id === id)?.pid ?? 0
    this.#open.set(pid, process)
    const ended = this.#read(pid, process, onData)
    ended.catch(() => {})
    return { pid, wait: () => asE2b(() => ended), kill: () => this.kill(pid) }
  }

  async sendInput(pid: number, data: Uint8Array): Promise<void> {
    await asE2b(() => this.#get(pid).write(data))
  }

  async resize(pid: number, size: { cols: number; rows: number }): Promise<void> {
    await asE2b(() => this.#get(pid).resize({ columns: size.cols, rows: size.rows }))
  }

  /** Whether there was one to kill. */
  async kill(pid: number): Promise<boolean> {
    const process = this.#open.get(pid)
    if (!process) return false
    await asE2b(() => process.kill('SIGKILL'))
    return true
  }

  async #read(pid: number, process: SandboxProcess, onData: PtyOptions['onData']): Promise<{ exitCode: number }> {
    try {
      for await (const { data } of process) await onData(data)
      return { exitCode: await process.exitCode }
    } finally {
      this.#open.delete(pid)
    }
  }

  #get(pid: number): SandboxProcess {
    const process = this.#open.get(pid)
    if (!process) throw new NotFoundError('NotFound', `no terminal with process id ${pid} is open here`)
    return process
  }
}
