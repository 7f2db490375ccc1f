import { ByteQueue } from '@corral/ports'
import type { WebSocket } from 'ws'
import { type ProcessClient, parseResize } from '../process/serve-process.js'
import type { ProcessStreams } from '../stream-upgrade.js'
import { closeWebSocket, send } from './accept-web-socket.js'
import { type ChannelCodec, decodeFrame, encodeFrame } from './subprotocols.js'

const stdinChannel = 0
const channels = { stdout: 1, stderr: 2 } as const
const statusChannel = 3
const resizeChannel = 4
const closeChannel = 255
const maxChunkBytes = 128 * 1024

/** Exec and attach over WebSocket channels. */
export function webSocketProcessClient(
  webSocket: WebSocket,
  codec: ChannelCodec,
  streams: ProcessStreams,
  highWaterBytes: number,
): ProcessClient {
  const stdin = new ByteQueue(highWaterBytes, () => webSocket.resume())
  const gone = new AbortController()
  let resize: ((columns: number, rows: number) => void) | undefined
  /** A size that came before the process did: clients send one as soon as they are connected. */
  let early: { columns: number; rows: number } | undefined

  webSocket.on('message', (data) => {
    const frame = decodeFrame(codec, data as Buffer) // nodebuffer is the default binary type
    if (!frame) return
    if (frame.channel === stdinChannel) stdin.push(frame.payload)
    else if (codec.halfClose && frame.channel === closeChannel && frame.payload[0] === stdinChannel) stdin.end()
    else if (frame.channel === resizeChannel) {
      const size = parseResize(frame.payload.toString('utf8'))
      if (size && resize) resize(size.columns, size.rows)
      else if (size) early = size
    }
    if (stdin.isFull) webSocket.pause()
  })
  webSocket.once('close', () => {
    stdin.end()
    gone.abort(new Error('the client is gone'))
  })
  // Tells clients that wait for a first message that the streams are open.
  const first = streams.stdout ? channels.stdout : streams.stderr ? channels.stderr : statusChannel
  send(webSocket, encodeFrame(codec, first, Buffer.alloc(0))).catch(() => {})

  return {
    stdin,
    gone: gone.signal,
    onResize(listener) {
      resize = listener
      if (early) listener(early.columns, early.rows)
    },
    async write(stream, chunk) {
      for (let start = 0; start < chunk.length; start += maxChunkBytes) {
        await send(webSocket, encodeFrame(codec, channels[stream], chunk.subarray(start, start + maxChunkBytes)))
      }
    },
    async finish(status) {
      // Before v4 the channel carries words, and only when something went wrong.
      const text =
        codec.version >= 4 ? JSON.stringify(status) : status.status === 'Failure' ? status.message : undefined
      if (text !== undefined) {
        await send(webSocket, encodeFrame(codec, statusChannel, Buffer.from(text))).catch(() => {}) // gone in between
      }
      stdin.discard()
      await closeWebSocket(webSocket)
    },
  }
}
