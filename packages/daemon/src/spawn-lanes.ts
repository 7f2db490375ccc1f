import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import type { Socket } from 'node:net'
import { constants as system } from 'node:os'
import { CorralError, type OutputStream, type SignalName } from '@corral/protocol'
import type { CommandChild, CommandEnd } from './command-child.js'

/** The program that `spawn.c` belongs to, where our own node runs the sandbox. */
const ownNodePath = '/run/corral/supervisor'

/** Commands that run at once by way of the helper; the daemon starts what is more itself. */
const laneCount = 8
const maxSpecBytes = 512 * 1024
/** After a helper that was killed: one that cannot live is not started for every command. */
const restMs = 10_000

const Frame = { exec: 0x02, signal: 0x04, stdout: 0x21, stderr: 0x22, exit: 0x23, started: 0x24, error: 0x25 } as const
const headerBytes = 5

/** The helper of this sandbox, where there is one that its user may not change: it sees the environment of every command. */
export function findSpawnHelper(path: string = ownNodePath): string | undefined {
  return isAccessible(path, constants.X_OK) && !isAccessible(path, constants.W_OK) ? path : undefined
}

function isAccessible(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false // not there, or not ours to use in this way
  }
}

interface LaneCommand {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

/**
 * Starts commands through a small helper process: a fork of this one takes longer than most commands run. The helper is
 * started by the first command, which does not wait for it, or before that by `prepare`.
 */
export class SpawnLanes {
  readonly #path: string
  #helper: ChildProcess | undefined
  #free: Lane[] = []
  #notBeforeMs = 0
  #isClosed = false

  constructor(path: string) {
    this.#path = path
  }

  /** Undefined where no lane is free or the command does not fit: the caller starts it then. */
  async start(command: LaneCommand): Promise<CommandChild | undefined> {
    const spec = encodeSpec(command)
    if (!spec || this.#isClosed) return undefined
    const lane = this.#free.pop()
    if (lane) return lane.start(spec, command.argv[0]!)
    if (!this.#helper) setImmediate(() => this.#startHelper())
    return undefined
  }

  /** Starts the helper where it does not run. */
  prepare(): void {
    this.#startHelper()
  }

  /** Ends the helper, and with it what it runs. */
  close(): void {
    this.#isClosed = true
    this.#helper?.kill('SIGKILL')
  }

  #startHelper(): void {
    if (this.#helper || this.#isClosed || performance.now() < this.#notBeforeMs) return
    this.#notBeforeMs = performance.now() + restMs
    const lanes = Array.from({ length: laneCount }, () => 'pipe' as const)
    const stdio = ['ignore', 'ignore', 'ignore', ...lanes] as const
    const helper = spawn(this.#path, ['spawn', String(laneCount)], {
      cwd: '/',
      env: {},
      detached: true,
      stdio: [...stdio],
    })
    this.#helper = helper
    const isGone = (): void => {
      this.#helper = undefined
      this.#free = []
    }
    helper.once('error', isGone).once('exit', isGone)
    helper.unref()
    if (helper.pid === undefined) return
    let isEnding = false
    for (const socket of helper.stdio.slice(3)) {
      const onFree = (): void => {
        if (this.#helper === helper && !isEnding) this.#free.push(lane)
      }
      // It ends as a whole: the lanes that are still open take a command that it will never read.
      const onClosed = (): void => {
        isEnding = true
        if (this.#helper === helper) this.#free = []
      }
      const lane = new Lane(socket as Socket, onFree, onClosed)
      this.#free.push(lane)
    }
  }
}

/** One socket to the helper: one command after the other. */
class Lane {
  readonly #socket: Socket
  readonly #onFree: () => void
  #pending: Buffer = Buffer.alloc(0)
  #command: LaneChild | undefined

  constructor(socket: Socket, onFree: () => void, onClosed: () => void) {
    this.#socket = socket
    this.#onFree = onFree
    socket.unref()
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.once('close', () => {
      onClosed()
      this.#command?.lose()
    })
  }

  /** Undefined where the helper was gone before it could read the command: that has not been started. */
  start(spec: Buffer, program: string): Promise<CommandChild | undefined> {
    return new Promise((resolve, reject) => {
      const command = new LaneChild(this.#socket, program, resolve, reject)
      this.#command = command
      this.#socket.write(frame(Frame.exec, spec), (error) => (error ? command.lose() : command.isSent()))
    })
  }

  #take(chunk: Buffer): void {
    let data: Buffer = this.#pending.length > 0 ? Buffer.concat([this.#pending, chunk]) : chunk
    while (data.length >= headerBytes) {
      const length = data.readUInt32LE(1)
      if (data.length < headerBytes + length) break
      const type = data[0]
      const command = this.#command
      const isLast = type === Frame.exit || type === Frame.error
      if (isLast) this.#command = undefined
      command?.take(type ?? 0, data.subarray(headerBytes, headerBytes + length))
      data = data.subarray(headerBytes + length)
      if (!isLast) continue
      // A reader that held the last command up must not hold up the next.
      this.#socket.resume()
      this.#onFree()
    }
    this.#pending = data
  }
}

class LaneChild implements CommandChild {
  pid = 0
  readonly stdin = undefined
  readonly #socket: Socket
  readonly #program: string
  readonly #started: (child: CommandChild | undefined) => void
  readonly #failed: (error: CorralError) => void
  #onData: (stream: OutputStream, data: Buffer) => void = () => {}
  #onEnd: (end: CommandEnd) => void = () => {}
  #early: (() => void)[] | undefined = []
  #isSent = false
  #hasEnded = false

  constructor(
    socket: Socket,
    program: string,
    started: (child: CommandChild | undefined) => void,
    failed: (error: CorralError) => void,
  ) {
    this.#socket = socket
    this.#program = program
    this.#started = started
    this.#failed = failed
  }

  take(type: number, payload: Buffer): void {
    if (type === Frame.started) {
      this.pid = payload.readUInt32LE(0)
      this.#started(this)
    } else if (type === Frame.stdout) this.#tell(() => this.#onData('stdout', payload))
    else if (type === Frame.stderr) this.#tell(() => this.#onData('stderr', payload))
    else if (type === Frame.exit) this.#end({ status: payload.readInt32LE(0) })
    else if (type === Frame.error) {
      const message = payload.toString('utf8').replace(/^\S+ /, '')
      this.#hasEnded = true
      this.#failed(new CorralError('CommandNotExecutable', `"${this.#program}" cannot be started: ${message}`))
    }
  }

  /** The helper can read it from here on, and may have started it whatever is heard of it. */
  isSent(): void {
    this.#isSent = true
  }

  /** The helper was killed, by something in the sandbox: how the command ends is not seen any more. */
  lose(): void {
    if (this.#hasEnded) return
    const message = 'the process that had started it was killed'
    if (!this.#isSent && this.pid === 0) {
      this.#hasEnded = true
      this.#started(undefined)
    } else if (this.pid === 0) this.#failed(new CorralError('ProcessLost', message))
    else {
      killGroup(this.pid)
      this.#end({ lost: message })
    }
  }

  listen(onData: (stream: OutputStream, data: Buffer) => void, onEnd: (end: CommandEnd) => void): void {
    this.#onData = onData
    this.#onEnd = onEnd
    const early = this.#early ?? []
    this.#early = undefined
    for (const tell of early) tell()
  }

  setPaused(isPaused: boolean): void {
    if (this.#hasEnded) return
    if (isPaused) this.#socket.pause()
    else this.#socket.resume()
  }

  kill(signal: SignalName, group: boolean): boolean {
    if (this.#hasEnded) return false
    // The helper knows whether the number is still this command's.
    this.#socket.write(frame(Frame.signal, Buffer.from(`${group ? '-' : ''}${system.signals[signal]}`)))
    return true
  }

  #end(end: CommandEnd): void {
    this.#hasEnded = true
    this.#tell(() => this.#onEnd(end))
  }

  /** Output may come in the same piece as the start, before its listener is there. */
  #tell(tell: () => void): void {
    if (this.#early) this.#early.push(tell)
    else tell()
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** As `native/protocol.h` describes it; undefined where it is too long for a frame. */
function encodeSpec({ argv, cwd, env }: LaneCommand): Buffer | undefined {
  const variables = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
  const words = ['', cwd, '', String(variables.length), ...variables, ...argv]
  if (words.some((word) => word.includes('\0'))) return undefined
  const spec = Buffer.from(`${words.join('\0')}\0`)
  return spec.length <= maxSpecBytes ? spec : undefined
}

function frame(type: number, payload: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(headerBytes + payload.length)
  bytes[0] = type
  bytes.writeUInt32LE(payload.length, 1)
  payload.copy(bytes, headerBytes)
  return bytes
}
