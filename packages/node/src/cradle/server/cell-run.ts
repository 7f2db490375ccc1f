import { type ChildProcess, spawn } from 'node:child_process'
import type { Duplex } from 'node:stream'
import type { CellExit, ResourceLimits } from '../../isolation/isolation.js'
import { IsolationError, isolationError } from '../../isolation/isolation-error.js'
import {
  decodeError,
  decodeExit,
  encodeFrame,
  encodeSpec,
  Frame,
  FrameReader,
  type ProcessSpec,
} from '../protocol/frames.js'
import { presentEnd } from '../supervisor/present-end.js'
import type { Cgroup } from './cgroups.js'
import type { ContainerLog, OutputStream } from './container-log.js'
import type { LaunchCommand } from './launch-command.js'
import { killSideProcesses, ProcessTurns } from './side-processes.js'

const startTimeoutMs = 60_000
const lastWordsMs = 3_000
const askedEndMs = 5_000
const maxProblemBytes = 8_192

export interface CellRunInput {
  /** Started by `spawnLauncher`, perhaps long ago. */
  launcher: ChildProcess
  description: string
  spec: ProcessSpec
  /** What the cell's mounts still need before its main process may start. */
  beforeMain?: ((launcher: number) => Promise<void>) | undefined
  log: ContainerLog
  cgroup: Cgroup
  now: () => Date
}

/** Who watches a running cell from outside: gets its output from now on and how it ended. */
export interface CellWatcher {
  output(stream: OutputStream, chunk: Buffer): void
  ended(exit: CellExit): void
}

/** Starts the program that becomes a cell once it has read its description. */
export function spawnLauncher(command: Omit<LaunchCommand, 'description'>): ChildProcess {
  return spawn(command.program, command.args, {
    cwd: command.cwd,
    env: command.env,
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe', 'pipe', ...command.fds],
  })
}

/**
 * One run of one container, from the launcher's start to the last line of its log. Holds the control connection: while
 * this process lives the cell lives, and the other way round everything it says ends up in the log and with watchers.
 */
export class CellRun {
  readonly watchers: Set<CellWatcher> = new Set()
  readonly exited: Promise<CellExit>
  #startedAt = ''
  #mainPid = 0
  #turns: ProcessTurns | undefined
  #reported: { exitCode: number; signal?: number } | undefined
  #problem = ''
  #hasEnded = false
  #refusal: IsolationError | undefined
  readonly #child: ChildProcess
  readonly #control: Duplex
  readonly #oomBefore: number

  private constructor(private readonly input: CellRunInput) {
    const { launcher, description } = input
    this.#child = launcher
    this.#oomBefore = input.cgroup.oomKills()
    this.#control = this.#child.stdio[3] as Duplex
    this.exited = this.#follow()
    const ignore = (): void => {
      // The launcher is gone already; its exit tells the story.
    }
    this.#child.stdin?.on('error', ignore)
    this.#control.on('error', ignore)
    this.#child.stdin?.end(description)
    if (!input.beforeMain) this.#startMain()
  }

  /** Resolves once the main process runs; rejects typed when bwrap or the process could not be started. */
  static async start(input: CellRunInput): Promise<CellRun> {
    const run = new CellRun(input)
    const timer = setTimeout(() => {
      run.#refusal = new IsolationError('StartFailed', `no answer from the cell within ${startTimeoutMs} ms`)
      run.#child.kill('SIGKILL')
    }, startTimeoutMs)
    try {
      if (input.beforeMain) await Promise.race([run.#prepareMain(input.beforeMain), run.exited])
      await Promise.race([run.#hasStarted, run.exited])
    } finally {
      clearTimeout(timer)
    }
    if (run.#startedAt === '') {
      throw run.#refusal ?? new IsolationError('StartFailed', run.#problem.trim() || 'the cell ended before it started')
    }
    return run
  }

  /** How often the kernel has ended a process of it for want of memory. */
  get oomKills(): number {
    return this.input.cgroup.oomKills() - this.#oomBefore
  }

  /** How often the kernel has refused it a process. */
  get refusedForks(): number {
    return this.input.cgroup.refusedForks()
  }

  /** Changes the limits of all of its processes together. */
  limit(limits: ResourceLimits): void {
    this.input.cgroup.limit(limits, { hasChildren: false })
  }

  /** All of its processes. */
  get pids(): number[] {
    return this.input.cgroup.pids()
  }

  /** The process that was started for it; the cell lies below it. */
  get pid(): number | undefined {
    return this.#child.pid
  }

  async #prepareMain(prepare: (launcher: number) => Promise<void>): Promise<void> {
    try {
      if (this.#child.pid !== undefined) await prepare(this.#child.pid)
      this.#startMain()
    } catch (error) {
      this.#refusal ??= error instanceof IsolationError ? error : new IsolationError('StartFailed', String(error))
      this.#child.kill('SIGKILL')
    }
  }

  #startMain(): void {
    if (this.#control.writable) this.#control.write(encodeFrame(Frame.main, encodeSpec(this.input.spec)))
  }

  get startedAt(): string {
    return this.#startedAt
  }

  /** Hands frames of an attached client on: stdin, end of it, size. */
  send(frame: Buffer): boolean {
    return this.#control.writable ? this.#control.write(frame) : true
  }

  onceDrained(callback: () => void): void {
    this.#control.once('drain', callback)
  }

  /**
   * Ends everything in it; the exit is reported through `exited` as for any other end. The supervisor is asked first:
   * killed from outside it would be left to the machine's first process to reap.
   */
  async kill(): Promise<void> {
    if (this.#control.writable) this.#control.write(encodeFrame(Frame.kill))
    await Promise.race([this.exited, expire(askedEndMs)])
    if (this.#hasEnded) return
    await this.input.cgroup.kill()
    this.#child.kill('SIGKILL')
  }

  /** Ends everything in it but the supervisor and the main process. */
  async halt(): Promise<void> {
    if (this.#child.pid !== undefined) await killSideProcesses(this.#child.pid, this.#mainPid, this.input.cgroup)
  }

  /** Lets so many of what is in it beside the supervisor and the main process run, others than before, and stops the rest. */
  async takeTurn(running: number): Promise<void> {
    if (this.#child.pid === undefined) return
    this.#turns ??= await ProcessTurns.begin(this.#child.pid, this.#mainPid, this.input.cgroup)
    this.#turns.next(running)
  }

  /** Lets go on what `takeTurn` has stopped. */
  continueRest(): void {
    this.#turns?.end()
    this.#turns = undefined
  }

  #announceStart: () => void = () => {}
  readonly #hasStarted: Promise<void> = new Promise((resolve) => {
    this.#announceStart = resolve
  })

  async #follow(): Promise<CellExit> {
    const { log, now } = this.input
    log.begin()
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      if (this.#problem.length < maxProblemBytes) this.#problem += chunk.toString()
    })
    const childEnded = new Promise<void>((resolve) => {
      this.#child.once('error', (error) => {
        this.#problem += error.message
        resolve()
      })
      this.#child.once('exit', () => resolve())
    })
    const controlEnded = this.#readControl()
    await childEnded
    // The end may not come while a process that left the cell holds the connection; what was said before is there.
    const heard = new AbortController()
    await Promise.race([controlEnded, expire(lastWordsMs).then(() => presentEnd(this.#control, heard.signal))])
    heard.abort()
    this.#control.destroy()
    log.close()
    const wasOom = this.oomKills > 0
    // Without its word the cell was killed from outside; what bwrap itself exits with says nothing about it.
    const reported = this.#reported ?? { exitCode: 137, signal: 9 }
    const exit: CellExit = {
      ...reported,
      oomKilled: wasOom && (reported.signal === 9 || reported.exitCode === 137),
      startedAt: this.#startedAt || now().toISOString(),
      finishedAt: now().toISOString(),
    }
    this.#hasEnded = true
    for (const watcher of this.watchers) watcher.ended(exit)
    return exit
  }

  #readControl(): Promise<void> {
    const reader = new FrameReader()
    return new Promise((resolve) => {
      this.#control.on('data', (chunk: Buffer) => {
        try {
          for (const { type, payload } of reader.take(chunk)) this.#handle(type, payload)
        } catch (cause) {
          // The code of a pod can speak for a Node supervisor: nonsense ends its own cell, and not the cradle of them all.
          this.#refusal ??= new IsolationError('StartFailed', 'what the supervisor said is no frame', { cause })
          this.#control.destroy()
          this.#child.kill('SIGKILL')
        }
      })
      this.#control.on('end', resolve)
      this.#control.on('close', resolve)
    })
  }

  #handle(type: number, payload: Buffer): void {
    if (type === Frame.stdout || type === Frame.stderr) {
      const stream = type === Frame.stdout ? 'stdout' : 'stderr'
      this.input.log.write(stream, payload)
      for (const watcher of this.watchers) watcher.output(stream, payload)
    } else if (type === Frame.started) {
      this.#startedAt = this.input.now().toISOString()
      this.#mainPid = payload.readUInt32LE(0)
      this.#announceStart()
    } else if (type === Frame.exit) {
      this.#reported = decodeExit(payload)
    } else if (type === Frame.error) {
      const { code, message } = decodeError(payload)
      this.#refusal = isolationError(code, message)
    }
  }
}

function expire(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref()
  })
}
