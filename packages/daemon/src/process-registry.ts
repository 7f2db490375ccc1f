import { statSync } from 'node:fs'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CorralError, daemonLimits, type ProcessRecord, type StartProcessRequest } from '@corral/protocol'
import { type DurablePorts, DurableProcess } from './durable-process.js'
import { lostRecord } from './exit-status.js'
import { FinishedProcesses } from './finished-processes.js'
import { MemoryProcess } from './memory-process.js'
import type { ProcessHandle } from './process-handle.js'
import { findUser } from './process-user.js'
import { findProgram, findWrapperTools, wrapperScript } from './process-wrapper.js'
import { type ProcessMeta, readFinal, readMeta, writeFinal, writeMeta } from './record-files.js'
import { SpawnLanes } from './spawn-lanes.js'
import { TerminalProcess } from './terminal-process.js'

export interface ProcessRegistryOptions extends DurablePorts {
  /** Where the records live, one directory each. */
  readonly directory: string
  /** What every process inherits. */
  readonly env: NodeJS.ProcessEnv
  readonly defaultCwd: string
  /** See `SpawnLanes`; without it the daemon starts every command itself. */
  readonly spawnHelper?: string | undefined
}

/** All processes of a sandbox by id. An id is started once, however often and from however many sides it is asked for. */
export class ProcessRegistry {
  readonly #options: ProcessRegistryOptions
  readonly #script: string
  /** Settled or not: a start in progress is joined like a process that runs. */
  readonly #processes = new Map<string, Promise<ProcessHandle>>()
  readonly #lanes: SpawnLanes | undefined
  readonly #finished = new FinishedProcesses((id) => this.#processes.delete(id))
  #boundEnv: Readonly<Record<string, string>> = {}

  private constructor(options: ProcessRegistryOptions, script: string) {
    this.#options = options
    this.#script = script
    this.#lanes = options.spawnHelper === undefined ? undefined : new SpawnLanes(options.spawnHelper)
  }

  /** Picks up the records an earlier daemon left. */
  static async open(options: ProcessRegistryOptions): Promise<ProcessRegistry> {
    const script = wrapperScript(findWrapperTools(options.env.PATH ?? '/usr/bin:/bin'))
    await mkdir(options.directory, { recursive: true, mode: 0o700 })
    const registry = new ProcessRegistry(options, script)
    for (const name of await readdir(options.directory)) await registry.#recover(join(options.directory, name))
    return registry
  }

  /** Gets ready for the first command that is held in memory, which then starts as fast as later ones. */
  prepare(): void {
    this.#lanes?.prepare()
  }

  /** What a process gets that asks for nothing. */
  get env(): NodeJS.ProcessEnv {
    return { ...this.#options.env, ...this.#boundEnv }
  }

  /** Variables for every process started from now on, instead of those bound before. */
  bindEnv(env: Readonly<Record<string, string>>): void {
    this.#boundEnv = env
  }

  get size(): number {
    return this.#processes.size
  }

  async find(id: string): Promise<ProcessHandle | undefined> {
    return this.#processes.get(id)
  }

  async get(id: string): Promise<ProcessHandle> {
    const found = await this.find(id)
    if (!found) throw new CorralError('NotFound', `there is no process "${id}"`)
    return found
  }

  async records(): Promise<ProcessRecord[]> {
    return (await this.#handles()).map((handle) => handle.record())
  }

  /** The process under this id, started if there was none. A start that fails leaves nothing behind. */
  async startOrJoin(id: string, request: StartProcessRequest): Promise<{ handle: ProcessHandle; isNew: boolean }> {
    const known = this.#processes.get(id)
    if (known) return { handle: await known, isNew: false }
    if (this.#processes.size >= daemonLimits.processes) {
      throw new CorralError('TooManyRequests', `the sandbox already has ${this.#processes.size} processes`)
    }
    const starting = this.#start(id, request)
    this.#processes.set(id, starting)
    try {
      return { handle: await starting, isNew: true }
    } catch (error) {
      this.#processes.delete(id)
      throw error
    }
  }

  /** Lets go of all processes; those with a terminal end. */
  async detach(): Promise<void> {
    await Promise.all((await this.#handles()).map((handle) => handle.detach()))
    this.#lanes?.close()
  }

  /** Ends what still runs: asks first, kills after `graceMs`. */
  async terminate(graceMs: number): Promise<void> {
    await Promise.all((await this.#handles()).map((handle) => endProcess(handle, graceMs)))
  }

  async #handles(): Promise<ProcessHandle[]> {
    const settled = await Promise.allSettled(this.#processes.values())
    return settled.flatMap((entry) => (entry.status === 'fulfilled' ? [entry.value] : []))
  }

  async #start(id: string, request: StartProcessRequest): Promise<ProcessHandle> {
    const { env: base, clock, log } = this.#options
    const env = { ...base, ...this.#boundEnv, ...request.env }
    const cwd = request.cwd ?? this.#options.defaultCwd
    requireDirectory(cwd)
    requireProgram(request.argv[0]!, env.PATH ?? '', cwd)

    const directory = join(this.#options.directory, id)
    const meta: ProcessMeta = {
      id,
      argv: request.argv,
      cwd,
      ...(request.tty ? { tty: request.tty } : {}),
      stdin: request.stdin ?? (request.tty ? 'open' : 'null'),
      started_at: clock.now().toISOString(),
    }
    if (request.keep === 'memory' && !meta.tty) {
      const user = await findUser(request.user)
      const handle = await MemoryProcess.start(
        meta,
        env,
        { user, input: request.input, lanes: this.#lanes },
        this.#options,
      )
      this.#finished.watch(id, handle)
      return handle
    }
    if (request.user !== undefined) throw new CorralError('Invalid', 'user needs keep "memory" and no terminal')
    if (request.input !== undefined) throw new CorralError('Invalid', 'input needs keep "memory" and no terminal')
    await mkdir(directory, { mode: 0o700 })
    try {
      await writeMeta(directory, meta)
      const handle = meta.tty
        ? await TerminalProcess.start(directory, { ...meta, tty: meta.tty }, env, this.#options)
        : await DurableProcess.start(directory, meta, this.#script, env, this.#options)
      log.info('process started', { id, pid: handle.record().pid })
      return handle
    } catch (error) {
      await rm(directory, { recursive: true, force: true })
      throw error
    }
  }

  async #recover(directory: string): Promise<void> {
    const meta = await readMeta(directory)
    const hasStarted = meta?.tty ? true : await isPresent(join(directory, 'started'))
    if (!meta || !hasStarted) {
      // It never ran: its wrapper takes the latch first. Without the directory a late one cannot.
      await rm(directory, { recursive: true, force: true })
      return
    }
    if (meta.tty && !(await readFinal(directory))) {
      const exit = lostRecord('the terminal ended with the daemon that held it', this.#options.clock.now())
      await writeFinal(directory, { exit, output_bytes: await terminalBytes(directory) })
    }
    this.#processes.set(meta.id, DurableProcess.recover(directory, meta, this.#options))
  }
}

async function endProcess(handle: ProcessHandle, graceMs: number): Promise<void> {
  const deadlineMs = performance.now() + graceMs
  try {
    if (!handle.record().exit) handle.kill('SIGTERM', true)
    while (!handle.record().exit && performance.now() < deadlineMs) {
      await handle.changed.wait(Math.max(1, deadlineMs - performance.now()))
    }
    if (!handle.record().exit) handle.kill('SIGKILL', true)
  } catch (error) {
    if (!(error instanceof CorralError && error.code === 'ProcessExited')) throw error
  }
}

function requireDirectory(cwd: string): void {
  if (!isDirectory(cwd)) throw new CorralError('WorkingDirectoryMissing', `"${cwd}" is not a directory`)
}

/** Not by way of the thread pool, which costs a command more than the look itself. */
function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false // not there, or not ours to look at
  }
}

function requireProgram(name: string, path: string, cwd: string): void {
  if (findProgram(name, path, cwd)) return
  if (name.includes('/')) throw new CorralError('CommandNotExecutable', `"${name}" is not there or not executable`)
  throw new CorralError('CommandNotFound', `"${name}" is not installed in this sandbox`)
}

async function isPresent(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}

/** A terminal's log is stdout alone. */
async function terminalBytes(directory: string): Promise<number> {
  const found = await stat(join(directory, 'stdout')).catch(() => undefined)
  return found?.size ?? 0
}
