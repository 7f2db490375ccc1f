import { connect, type Socket } from 'node:net'
import { ByteQueue, type ByteStream, type DuplexProcess, type ProcessExit } from '@corral/ports'
import { IsolationError, isolationError } from '../../isolation/isolation-error.js'
import {
  decodeError,
  decodeExit,
  encodeFrame,
  encodeResize,
  encodeSpec,
  encodeStdin,
  Frame,
  FrameReader,
} from '../protocol/frames.js'
import { socketByteStream } from './socket-byte-stream.js'

const answerTimeoutMs = 60_000

export interface ExecRequest {
  command: readonly string[]
  env?: Readonly<Record<string, string>>
  workingDir?: string
  stdin: boolean
  stdout: boolean
  stderr: boolean
  tty: boolean
  signal?: AbortSignal
}

/** Opens one connection to a supervisor. Rejects with `CellLost` when its socket refuses connections. */
export async function connectSupervisor(path: string, signal?: AbortSignal): Promise<Socket> {
  if (signal?.aborted) throw new IsolationError('Aborted', 'the caller gave up', { cause: signal.reason })
  return await new Promise<Socket>((resolve, reject) => {
    const socket = connect({ path, allowHalfOpen: true })
    const fail = (cause: Error): void => {
      reject(new IsolationError('CellLost', 'the cell is gone: its supervisor does not answer', { cause }))
    }
    socket.once('error', fail)
    socket.once('connect', () => {
      socket.off('error', fail)
      resolve(socket)
    })
  })
}

/** Starts a command in the cell. Resolves once it runs; rejects typed when it could not be started. */
export async function execInCell(path: string, request: ExecRequest): Promise<DuplexProcess> {
  const socket = await connectSupervisor(path, request.signal)
  const spec = encodeSpec({
    tty: request.tty,
    stdin: request.stdin,
    workingDir: request.workingDir ?? '',
    podIP: '',
    env: request.env ?? {},
    argv: request.command,
  })
  socket.write(encodeFrame(Frame.exec, spec))
  return await processOver(socket, request)
}

/**
 * The process at the other end of a framed connection, once it says it has started. Used for exec and, with the cradle
 * at the other end, for attach. `kill` and an abort hang up, which ends an exec'd process group.
 */
export function processOver(
  socket: Socket,
  options: { stdin: boolean; stdout: boolean; stderr: boolean; signal?: AbortSignal },
): Promise<DuplexProcess> {
  const reader = new FrameReader()
  const resume = (): void => {
    if (!stdout.isFull && !stderr.isFull) socket.resume()
  }
  const stdout = new ByteQueue(1024 * 1024, resume)
  const stderr = new ByteQueue(1024 * 1024, resume)
  if (!options.stdout) stdout.discard()
  if (!options.stderr) stderr.discard()

  return new Promise<DuplexProcess>((resolve, reject) => {
    let settleExit: (exit: ProcessExit) => void = () => {}
    const exited = new Promise<ProcessExit>((settle) => {
      settleExit = settle
    })
    let isOver = false
    const finish = (exit: ProcessExit, failure?: Error): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      options.signal?.removeEventListener('abort', abort)
      stdout.end()
      stderr.end()
      settleExit(exit)
      reject(failure ?? new IsolationError('CellLost', exit.message ?? 'the cell ended before the command started'))
      socket.destroy()
    }
    const abort = (): void => finish({ exitCode: 137, signal: 9, message: 'the caller gave up' }, aborted(options))
    const timer = setTimeout(() => {
      finish({ exitCode: 137, message: 'no answer' }, new IsolationError('CellLost', 'the supervisor does not answer'))
    }, answerTimeoutMs)
    options.signal?.addEventListener('abort', abort, { once: true })

    const handle = (type: number, payload: Buffer): void => {
      if (type === Frame.stdout) stdout.push(payload)
      else if (type === Frame.stderr) stderr.push(payload)
      else if (type === Frame.started) {
        clearTimeout(timer)
        resolve(process)
      } else if (type === Frame.exit) finish(decodeExit(payload))
      else if (type === Frame.error) {
        const { code, message } = decodeError(payload)
        finish({ exitCode: code === 'NotExecutable' ? 126 : 127, message }, isolationError(code, message))
      }
    }
    const process: DuplexProcess = {
      stdout,
      stderr,
      exited,
      writeStdin: async (chunk) => {
        if (!options.stdin || isOver) return
        for (const frame of encodeStdin(chunk)) await write(socket, frame)
      },
      endStdin: () => {
        if (!isOver) socket.write(encodeFrame(Frame.eof))
      },
      resize: (columns, rows) => {
        if (!isOver) socket.write(encodeResize(columns, rows))
      },
      kill: () => finish({ exitCode: 137, signal: 9 }),
    }
    const lost = (cause?: Error): void => {
      const message = 'the cell ended under the command'
      finish({ exitCode: 137, message }, new IsolationError('CellLost', message, { cause }))
    }
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const { type, payload } of reader.take(chunk)) handle(type, payload)
      } catch (cause) {
        lost(cause instanceof Error ? cause : undefined)
      }
      if (stdout.isFull || stderr.isFull) socket.pause()
    })
    socket.on('error', lost)
    socket.on('end', () => lost())
    socket.on('close', () => lost())
    socket.resume()
    if (options.signal?.aborted) abort()
  })
}

/** A stream to a port inside the pod. Rejects with `ConnectionRefused` where no process listens. */
export async function dialInCell(
  path: string,
  port: number,
  options: { host?: string; signal?: AbortSignal } = {},
): Promise<ByteStream> {
  const socket = await connectSupervisor(path, options.signal)
  socket.write(encodeFrame(Frame.dial, `${port}\0${options.host ?? ''}\0`))
  const reply = await firstFrame(socket, options.signal)
  if (reply.type === Frame.started) return socketByteStream(socket, reply.rest)
  socket.destroy()
  const { code, message } = decodeError(reply.payload)
  throw isolationError(code, message)
}

/** Asks one question that is answered with one frame: signal, stat, kill. */
export async function askSupervisor(path: string, type: number, payload = '', signal?: AbortSignal): Promise<string> {
  const socket = await connectSupervisor(path, signal)
  socket.write(encodeFrame(type, payload))
  const reply = await firstFrame(socket, signal)
  socket.destroy()
  if (reply.type !== Frame.error) return reply.payload.toString()
  const { code, message } = decodeError(reply.payload)
  throw isolationError(code, message)
}

function firstFrame(
  socket: Socket,
  signal: AbortSignal | undefined,
): Promise<{ type: number; payload: Buffer; rest: Buffer }> {
  const reader = new FrameReader()
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      socket.pause()
      socket.off('data', read).off('error', lost).off('close', lost)
    }
    const fail = (error: IsolationError): void => {
      stop()
      socket.destroy()
      reject(error)
    }
    const abort = (): void => fail(aborted({ signal }))
    const lost = (): void => fail(new IsolationError('CellLost', 'the cell ended before it answered'))
    const timer = setTimeout(lost, answerTimeoutMs)
    const read = (chunk: Buffer): void => {
      try {
        for (const { type, payload } of reader.take(chunk)) {
          stop()
          resolve({ type, payload, rest: reader.stop() })
          return
        }
      } catch (cause) {
        fail(new IsolationError('CellLost', 'what the supervisor said is no frame', { cause }))
      }
    }
    signal?.addEventListener('abort', abort, { once: true })
    socket.on('data', read).on('error', lost).on('close', lost)
    if (signal?.aborted) abort()
  })
}

function write(socket: Socket, frame: Buffer): Promise<void> {
  if (socket.destroyed || socket.write(frame)) return Promise.resolve()
  return new Promise((resolve) => {
    const settle = (): void => {
      socket.off('drain', settle).off('close', settle)
      resolve()
    }
    socket.once('drain', settle).once('close', settle)
  })
}

function aborted({ signal }: { signal?: AbortSignal | undefined }): IsolationError {
  return new IsolationError('Aborted', 'the caller gave up', { cause: signal?.reason })
}
