import { type ChildProcess, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'
import { CorralError, type OutputStream, type SignalName } from '@corral/protocol'
import type { ProcessUser } from './process-user.js'
import { killGroup, signalNumber } from './signals.js'

/** How long output may still come after the end, when a background child holds the pipes open. */
const drainMs = 1_000

/** A shell's status, or why it is not known. */
export type CommandEnd = { readonly status: number } | { readonly lost: string }

/** A command that runs, leader of its own session, whichever process is its parent. */
export interface CommandChild {
  readonly pid: number
  /** Where one was asked for. */
  readonly stdin: Writable | undefined
  /** Called once, at once: what it has said since its start is told then. The end comes after all output. */
  listen(onData: (stream: OutputStream, data: Buffer) => void, onEnd: (end: CommandEnd) => void): void
  /** Holds it up in its pipes while its reader is behind. */
  setPaused(isPaused: boolean): void
  /** False where it has ended. */
  kill(signal: SignalName, group: boolean): boolean
}

interface ChildOptions {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly user?: ProcessUser | undefined
  readonly stdin: 'pipe' | 'ignore'
}

/** A child of this process. Resolves once the command runs. */
export async function startChild({ argv, cwd, env, user, stdin }: ChildOptions): Promise<CommandChild> {
  const [program, ...args] = argv
  const child = spawn(program!, args, { cwd, env, detached: true, stdio: [stdin, 'pipe', 'pipe'], ...user })
  if (child.pid === undefined) {
    const cause = await new Promise<Error>((resolve) => child.once('error', resolve))
    throw new CorralError('CommandNotExecutable', `"${program}" cannot be started: ${cause.message}`, { cause })
  }
  // What spawn could not do is known by now; later errors are those of signals, which have their own answer.
  child.on('error', () => {})
  return new OwnChild(child, child.pid)
}

class OwnChild implements CommandChild {
  readonly pid: number
  readonly stdin: Writable | undefined
  readonly #child: ChildProcess
  #isPaused = false

  constructor(child: ChildProcess, pid: number) {
    this.#child = child
    this.pid = pid
    this.stdin = child.stdin ?? undefined
  }

  listen(onData: (stream: OutputStream, data: Buffer) => void, onEnd: (end: CommandEnd) => void): void {
    const child = this.#child
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream]?.on('data', (data: Buffer) => onData(stream, data))
    }
    child.once('exit', (code, signal) => {
      const status = code ?? 128 + signalNumber(signal)
      let isOver = false
      const finish = () => {
        if (isOver) return
        isOver = true
        clearTimeout(timer)
        child.stdout?.destroy()
        child.stderr?.destroy()
        onEnd({ status })
      }
      const onTime = (): void => {
        // Output that waits for its reader has all the time it needs.
        if (this.#isPaused) timer = setTimeout(onTime, drainMs)
        else finish()
      }
      let timer = setTimeout(onTime, drainMs)
      child.once('close', finish)
    })
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused
    for (const pipe of [this.#child.stdout, this.#child.stderr]) isPaused ? pipe?.pause() : pipe?.resume()
  }

  kill(signal: SignalName, group: boolean): boolean {
    return killGroup(this.pid, signal, group)
  }
}
