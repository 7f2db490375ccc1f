import type { Socket } from 'node:net'
import { ByteQueue, type ByteStream } from '@corral/ports'
import { KubeError } from '@corral/resources'
import type WebSocket from 'ws'
import type { RawData } from 'ws'
import { ignoreFailure, isOpen } from './channel-process.js'
import { keepAlive, sendMessage } from './web-socket.js'

/** Like v4.channel.k8s.io with v5's close signal, so that both ends can half-close. Only Corral's servers offer it. */
export const halfCloseProtocol = 'v1.portforward.corral.dev'
export const portProtocols: readonly string[] = [halfCloseProtocol, 'v4.channel.k8s.io']

const dataChannel = 0
const errorChannel = 1
const closeChannel = 255
const portPrefixBytes = 2
/** Two chunks of 64 KiB with what HTTP puts around them go in one. */
const maxFrameBytes = 129 * 1024

/**
 * One connection to one port over a channel WebSocket. What the server says on the error channel fails the stream. On
 * servers without half-close, `end` leaves our side open until the other ends.
 */
export function channelPort(socket: WebSocket, port: number, signal: AbortSignal | undefined): ByteStream {
  const incoming = new ByteQueue(undefined, () => socket.resume())
  const skip = [portPrefixBytes, portPrefixBytes]
  const problem: Buffer[] = []
  let hasEnded = false
  let failure: unknown

  const destroy = (error?: unknown) => {
    failure ??= error
    socket.terminate()
  }
  const onAbort = () => destroy(signal?.reason)
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })

  socket.on('message', (data: RawData) => {
    const frame = data as Buffer // binaryType is nodebuffer, the default
    const channel = frame[0] ?? -1
    if (channel === closeChannel && frame[1] === dataChannel) return incoming.end()
    if (channel !== dataChannel && channel !== errorChannel) return
    const skipped = Math.min(skip[channel] ?? 0, frame.length - 1)
    skip[channel] = (skip[channel] ?? 0) - skipped
    const payload = frame.subarray(1 + skipped)
    if (channel === dataChannel) incoming.push(payload)
    else if (payload.length > 0) problem.push(payload)
    if (incoming.isFull) socket.pause()
  })
  socket.once('close', (code) => {
    signal?.removeEventListener('abort', onAbort)
    const said = Buffer.concat(problem).toString('utf8')
    if (said) failure ??= new KubeError('PortForwardFailed', `port ${port}: ${said}`)
    if (code !== 1000 && code !== 1005)
      failure ??= new KubeError('ConnectionLost', `port ${port}: the tunnel died (${code})`)
    incoming.end(failure)
  })
  keepAlive(socket)
  socket.resume()

  const writeAll = async (chunks: readonly Uint8Array[]): Promise<void> => {
    if (hasEnded) throw new KubeError('BadRequest', 'write after end')
    for (const frame of framesOf(chunks)) await sendMessage(socket, frame)
  }

  return {
    [Symbol.asyncIterator]: () => incoming[Symbol.asyncIterator](),
    write: (chunk) => writeAll([chunk]),
    writeAll,
    end() {
      if (hasEnded) return
      hasEnded = true
      if (socket.protocol === halfCloseProtocol && isOpen(socket)) {
        ignoreFailure(sendMessage(socket, Buffer.from([closeChannel, dataChannel])))
      }
    },
    destroy,
    ref: () => connectionOf(socket)?.ref(),
    unref: () => connectionOf(socket)?.unref(),
  }
}

/** Chunks as messages of the data channel, each byte copied once and messages as few as their limit allows. */
function* framesOf(chunks: readonly Uint8Array[]): Generator<Buffer> {
  let left = chunks.reduce((sum, { length }) => sum + length, 0)
  let frame = Buffer.alloc(0)
  let filled = 0
  for (const chunk of chunks) {
    for (let start = 0; start < chunk.length; ) {
      if (filled === frame.length) {
        frame = Buffer.allocUnsafe(Math.min(left, maxFrameBytes) + 1)
        frame[0] = dataChannel
        filled = 1
      }
      const piece = chunk.subarray(start, start + frame.length - filled)
      frame.set(piece, filled)
      filled += piece.length
      start += piece.length
      left -= piece.length
      if (filled === frame.length) yield frame
    }
  }
}

/** The library keeps the connection to itself; without it an idle tunnel would keep a finished program running. */
function connectionOf(socket: WebSocket): Socket | undefined {
  return (socket as unknown as { _socket?: Socket })._socket
}
