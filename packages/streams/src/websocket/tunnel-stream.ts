import { ByteQueue, type ByteStream } from '@corral/ports'
import type { WebSocket } from 'ws'
import { closeWebSocket, send } from './accept-web-socket.js'

/** The bytes of a WebSocket's binary messages as one stream: the carrier of SPDY inside WebSocket. */
export function tunnelStream(webSocket: WebSocket, highWaterBytes: number): ByteStream {
  const incoming = new ByteQueue(highWaterBytes, () => webSocket.resume())
  webSocket.on('message', (data) => {
    incoming.push(data as Buffer) // nodebuffer is the default binary type
    if (incoming.isFull) webSocket.pause()
  })
  webSocket.once('close', () => incoming.end())
  return {
    [Symbol.asyncIterator]: () => incoming[Symbol.asyncIterator](),
    write: (chunk) => send(webSocket, Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)),
    end: () => void closeWebSocket(webSocket),
    destroy: () => webSocket.terminate(),
  }
}
