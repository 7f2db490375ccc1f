import { ByteQueue, type ByteStream } from '@corral/ports'
import type { WebSocket } from 'ws'
import { forwardFailure, joinStreams } from '../port/forward-port.js'
import type { PortUpgrade } from '../stream-upgrade.js'
import { closeWebSocket, send } from './accept-web-socket.js'
import { type ChannelCodec, decodeFrame, encodeFrame } from './subprotocols.js'

const closeChannel = 255
const maxChunkBytes = 128 * 1024

/**
 * Port-forward over WebSocket channels: channel 2i carries the data of the i-th port, 2i + 1 its errors, and each
 * begins with the port's number. The socket closes when the last port has ended.
 */
export async function servePortChannels(
  webSocket: WebSocket,
  codec: ChannelCodec,
  ports: readonly number[],
  upgrade: Pick<PortUpgrade, 'dial'>,
  signal: AbortSignal,
  highWaterBytes: number,
): Promise<void> {
  const queues = ports.map(() => new ByteQueue(highWaterBytes, () => resumeIfDrained()))
  const resumeIfDrained = () => {
    if (!queues.some((queue) => queue.isFull)) webSocket.resume()
  }
  webSocket.on('message', (data) => {
    const frame = decodeFrame(codec, data as Buffer) // nodebuffer is the default binary type
    if (!frame) return
    const isClose = codec.halfClose && frame.channel === closeChannel
    const channel = isClose ? (frame.payload[0] ?? 1) : frame.channel
    const queue = channel % 2 === 0 ? queues[channel / 2] : undefined
    if (isClose) queue?.end()
    else queue?.push(frame.payload)
    if (queue?.isFull) webSocket.pause()
  })
  webSocket.once('close', () => {
    for (const queue of queues) queue.end()
  })

  await Promise.all(
    ports.map(async (port, index) => {
      const queue = queues[index]
      if (queue) await servePort(webSocket, codec, { port, index, queue }, upgrade, signal)
    }),
  )
  await closeWebSocket(webSocket)
}

async function servePort(
  webSocket: WebSocket,
  codec: ChannelCodec,
  { port, index, queue }: { port: number; index: number; queue: ByteQueue },
  upgrade: Pick<PortUpgrade, 'dial'>,
  signal: AbortSignal,
): Promise<void> {
  const [dataChannel, errorChannel] = [2 * index, 2 * index + 1]
  const announce = Buffer.alloc(2)
  announce.writeUInt16LE(port)
  try {
    await send(webSocket, encodeFrame(codec, dataChannel, announce))
    await send(webSocket, encodeFrame(codec, errorChannel, announce))
    const target = await upgrade.dial(port, signal)
    await joinStreams(channelStream(webSocket, codec, dataChannel, queue), target, signal)
  } catch (error) {
    if (webSocket.readyState !== webSocket.OPEN) return
    await send(webSocket, encodeFrame(codec, errorChannel, Buffer.from(forwardFailure(port, error)))).catch(() => {})
  }
}

function channelStream(webSocket: WebSocket, codec: ChannelCodec, channel: number, queue: ByteQueue): ByteStream {
  return {
    [Symbol.asyncIterator]: () => queue[Symbol.asyncIterator](),
    async write(chunk) {
      for (let start = 0; start < chunk.length; start += maxChunkBytes) {
        await send(webSocket, encodeFrame(codec, channel, chunk.subarray(start, start + maxChunkBytes)))
      }
    },
    end() {
      if (codec.halfClose) send(webSocket, encodeFrame(codec, closeChannel, Buffer.from([channel]))).catch(() => {})
      // Without half-close the end of what the port sends is the end of the connection, or clients would wait for ever.
      else queue.end()
    },
    destroy: () => queue.end(),
  }
}
