import { randomUUID } from 'node:crypto'
import { SandboxError } from '../sandbox-error.js'
import type { SandboxHandle } from '../sandbox-handle.js'
import type { SandboxProcess } from '../sandbox-process.js'
import { asE2b, CommandExitError, NotFoundError } from './errors.js'

export interface CommandResult {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  readonly error?: string
}

export interface OutputCallbacks {
  readonly onStdout?: (data: string) => void | Promise<void>
  readonly onStderr?: (data: string) => void | Promise<void>
}

export interface CommandStartOptions extends OutputCallbacks {
  readonly cwd?: string
  readonly envs?: Readonly<Record<string, string>>
  readonly user?: string
  /** Keeps standard input open for `sendStdin`. */
  readonly stdin?: boolean
  /** Ends the command; 60 s without it, 0 for none. */
  readonly timeoutMs?: number
}

export interface ProcessInfo {
  readonly pid: number
  readonly cmd: string
  readonly args: readonly string[]
  readonly envs: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** A command that runs: its output so far, and its end. */
export class CommandHandle {
  readonly pid: number
  readonly #process: SandboxProcess
  readonly #ended: Promise<CommandResult>
  readonly #detached: Promise<'detached'>
  #detach: () => void = () => {}
  #stdout = ''
  #stderr = ''
  #exitCode: number | undefined
  #thrown: { readonly error: unknown } | undefined

  constructor(pid: number, process: SandboxProcess, callbacks: OutputCallbacks) {
    this.pid = pid
    this.#process = process
    this.#detached = new Promise((resolve) => {
      this.#detach = () => resolve('detached')
    })
    this.#ended = this.#read(callbacks)
    // Without this a command that fails and is never awaited ends the program.
    this.#ended.catch(() => {})
  }

  get stdout(): string {
    return this.#stdout
  }

  get stderr(): string {
    return this.#stderr
  }

  get exitCode(): number | undefined {
    return this.#exitCode
  }

  /** Its result; `CommandExitError` where the exit code is not 0, what a callback threw where one did. */
  async wait(): Promise<CommandResult> {
    const result = await asE2b(() => this.#ended).catch((error: unknown) => {
      throw this.#thrown ? this.#thrown.error : error
    })
    if (result.exitCode !== 0) throw new CommandExitError(result)
    return result
  }

  /** Stops following; the command goes on. `wait` rejects from then on. */
  async disconnect(): Promise<void> {
    this.#detach()
  }

  async kill(): Promise<boolean> {
    if (this.#exitCode !== undefined) return false
    await asE2b(() => this.#process.kill('SIGKILL'))
    return true
  }

  async #read(callbacks: OutputCallbacks): Promise<CommandResult> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    const take = async (stream: 'stdout' | 'stderr', text: string): Promise<void> => {
      if (text === '') return
      if (stream === 'stdout') this.#stdout += text
      else this.#stderr += text
      try {
        await (stream === 'stdout' ? callbacks.onStdout : callbacks.onStderr)?.(text)
      } catch (error) {
        this.#thrown = { error }
        throw error
      }
    }
    const pieces = this.#process[Symbol.asyncIterator]()
    for (;;) {
      const next = await Promise.race([pieces.next(), this.#detached])
      if (next === 'detached') throw new SandboxError('Aborted', 'the command is no longer followed')
      if (next.done) break
      const { stream, data } = next.value
      await take(stream, decoders[stream].decode(data, { stream: true }))
    }
    // The beginning of a character that never came whole.
    for (const stream of ['stdout', 'stderr'] as const) await take(stream, decoders[stream].decode())
    this.#exitCode = await this.#process.exitCode
    return { exitCode: this.#exitCode, stdout: this.#stdout, stderr: this.#stderr }
  }
}

const defaultTimeoutMs = 60_000

/** `sandbox.commands`: shell commands, in the foreground and in the background. */
export class Commands {
  readonly #sandbox: SandboxHandle

  constructor(sandbox: SandboxHandle) {
    this.#sandbox = sandbox
  }

  run(cmd: string, options?: CommandStartOptions & { background?: false }): Promise<CommandResult>
  run(cmd: string, options: CommandStartOptions & { background: true }): Promise<CommandHandle>
  async run(
    cmd: string,
    options: CommandStartOptions & { background?: boolean } = {},
  ): Promise<CommandResult | CommandHandle> {
    const handle = await this.#start(cmd, options)
    return options.background ? handle : handle.wait()
  }

  /** Follows a command that runs already, from its first output on. */
  async connect(pid: number, options: OutputCallbacks = {}): Promise<CommandHandle> {
    return this.#follow(pid, await this.#idOf(pid), undefined, options)
  }

  /** The commands that run. */
  async list(): Promise<ProcessInfo[]> {
    const records = await asE2b(() => this.#sandbox.processes.list())
    return records
      .filter((record) => !record.exit && record.pid !== undefined)
      .map(({ pid, cwd, argv: [cmd = '', ...args] }) => ({ pid: pid ?? 0, cmd, args, envs: {}, cwd }))
  }

  /** Whether there was one to kill. */
  async kill(pid: number): Promise<boolean> {
    const id = await this.#find(pid)
    if (id === undefined) return false
    await asE2b(() => this.#sandbox.processes.kill(id, 'SIGKILL'))
    return true
  }

  async sendStdin(pid: number, data: string): Promise<void> {
    const id = await this.#idOf(pid)
    await asE2b(() => this.#sandbox.processes.write(id, data))
  }

  async #start(cmd: string, options: CommandStartOptions): Promise<CommandHandle> {
    const id = `e2b-${randomUUID()}`
    const { cwd, envs, user, stdin } = options
    const started = await asE2b(() =>
      this.#sandbox.processes.start({
        id,
        // As E2B runs commands: a login shell, bash where there is one.
        argv: [
          '/bin/sh',
          '-c',
          'if command -v bash >/dev/null; then exec bash -l -c "$1"; else exec sh -c "$1"; fi',
          'sh',
          cmd,
        ],
        cwd,
        env: envs,
        user,
        stdin: stdin ? 'open' : undefined,
      }),
    )
    return this.#follow(started.pid ?? 0, id, options.timeoutMs ?? defaultTimeoutMs, options)
  }

  #follow(pid: number, id: string, timeoutMs: number | undefined, callbacks: OutputCallbacks): CommandHandle {
    const process = this.#sandbox.processes.attach(id, timeoutMs ? { timeoutMs } : {})
    return new CommandHandle(pid, process, callbacks)
  }

  async #find(pid: number): Promise<string | undefined> {
    const records = await asE2b(() => this.#sandbox.processes.list())
    return records.find((record) => record.pid === pid && !record.exit)?.id
  }

  async #idOf(pid: number): Promise<string> {
    const id = await this.#find(pid)
    if (id === undefined) throw new NotFoundError('NotFound', `no command with process id ${pid} runs in the sandbox`)
    return id
  }
}
