import { ByteQueue, type DuplexProcess, type ProcessExit } from '@corral/ports'
import { KubeError } from '@corral/resources'
import WebSocket, { type RawData } from 'ws'
import { exitFromStatus, lostExit } from './exec-status.js'
import { keepAlive, sendMessage } from './web-socket.js'

const stdinChannel = 0
const stdoutChannel = 1
const stderrChannel = 2
const statusChannel = 3
const resizeChannel = 4
/** v5 only: the next byte names a channel that ends. */
const closeChannel = 255
const maxFrameBytes = 128 * 1024

/**
 * A process on the other end of a channel WebSocket. Reading pauses while a reader is behind; `kill` and an aborted
 * signal drop the connection, which is all the protocol offers to end a process. Before v5 stdin cannot be half-closed.
 */
export function channelProcess(socket: WebSocket, signal: AbortSignal | undefined): DuplexProcess {
  const resumeIfDrained = () => {
    if (!stdout.isFull && !stderr.isFull) socket.resume()
  }
  const stdout = new ByteQueue(undefined, resumeIfDrained)
  const stderr = new ByteQueue(undefined, resumeIfDrained)
  const statusParts: Buffer[] = []
  let killed: ProcessExit | undefined

  const kill = (
    exit: ProcessExit = { exitCode: 137, signal: 9, message: 'the connection to the process was dropped' },
  ) => {
    killed ??= exit
    socket.terminate()
  }
  const onAbort = () => kill()
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })

  socket.on('message', (data: RawData) => {
    const frame = data as Buffer // binaryType is nodebuffer, the default
    const payload = frame.subarray(1)
    if (frame[0] === stdoutChannel) stdout.push(payload)
    else if (frame[0] === stderrChannel) stderr.push(payload)
    else if (frame[0] === statusChannel) statusParts.push(payload)
    if (stdout.isFull || stderr.isFull) socket.pause()
  })

  const exited = new Promise<ProcessExit>((resolve) => {
    socket.once('close', (code, reason) => {
      signal?.removeEventListener('abort', onAbort)
      const status = Buffer.concat(statusParts).toString('utf8')
      const why = reason.length > 0 ? reason.toString() : `close code ${code}`
      const lost = `the connection ended before the process did (${why})`
      const exit = status ? exitFromStatus(status) : (killed ?? lostExit(lost))
      const error = status || killed ? undefined : new KubeError('ConnectionLost', lost)
      stdout.end(error)
      stderr.end(error)
      resolve(exit)
    })
  })
  keepAlive(socket)
  socket.resume()

  return {
    stdout,
    stderr,
    exited,
    async writeStdin(chunk) {
      for (let start = 0; start < chunk.length; start += maxFrameBytes) {
        await sendMessage(socket, frameOf(stdinChannel, chunk.subarray(start, start + maxFrameBytes)))
      }
    },
    endStdin() {
      if (socket.protocol === 'v5.channel.k8s.io')
        ignoreFailure(sendMessage(socket, Buffer.from([closeChannel, stdinChannel])))
    },
    resize(columns, rows) {
      const size = Buffer.from(JSON.stringify({ Width: columns, Height: rows }))
      ignoreFailure(sendMessage(socket, frameOf(resizeChannel, size)))
    },
    kill: () => kill(),
  }
}

export function frameOf(channel: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(payload.length + 1)
  frame[0] = channel
  frame.set(payload, 1)
  return frame
}

/** For messages whose loss the end of the connection reports anyway. */
export function ignoreFailure(promise: Promise<void>): void {
  promise.catch(() => {})
}

/** Whether the socket can still carry a message. */
export const isOpen = (socket: WebSocket): boolean => socket.readyState === WebSocket.OPEN
