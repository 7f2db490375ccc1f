import type { WebSocket } from 'ws'

/** How many bytes may be buffered for one slow client. */
const maxBufferedBytes = 1024 * 1024
const lookAgainMs = 50

export const hasRoom = (socket: WebSocket): boolean =>
  socket.bufferedAmount < maxBufferedBytes || socket.readyState !== socket.OPEN

/** Settles when the reader has taken what waits for it, or has left. */
export async function room(socket: WebSocket): Promise<void> {
  while (!hasRoom(socket)) await new Promise((resolve) => setTimeout(resolve, lookAgainMs))
}
