import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { ApiResponse, WatchFrame, WatchFrames } from '@corral/ports'

const GZIP_FROM_BYTES = 128 * 1024
const PIECE_LENGTH = 32 * 1024
const SPACE = Buffer.from(' ')
const compress = promisify(gzip)

export interface ResponseWishes {
  readonly isHead: boolean
  readonly acceptsGzip: boolean
  /** How long a watch may be silent before a space goes out; without it, or at 0, none does. */
  readonly watchKeepAliveMs?: number
}

/** Sends an answer. Settles when it has been handed to the socket or the client is gone; never rejects. */
export async function writeResponse(
  response: ServerResponse,
  answer: ApiResponse,
  wishes: ResponseWishes,
): Promise<void> {
  const { body, status } = answer
  // Names and values in turn: the form Node need not look through.
  const headers: (string | number)[] = ['audit-id', randomUUID()]
  for (const name in answer.headers) headers.push(name, answer.headers[name]!)
  switch (body.type) {
    case 'empty':
      headers.push('content-length', 0)
      response.writeHead(status, headers).end()
      return
    case 'object':
    case 'bytes': {
      let content = body.type === 'object' ? body.json() : body.bytes
      if (wishes.acceptsGzip && content.length > GZIP_FROM_BYTES) {
        content = await compress(content, { level: 1 })
        headers.push('content-encoding', 'gzip', 'vary', 'Accept-Encoding')
      }
      // Node sends headers in the encoding of text that goes with them; a warning is made of bytes.
      if (answer.headers.warning !== undefined) content = Buffer.from(content)
      headers.push('content-length', Buffer.byteLength(content))
      response.writeHead(status, headers)
      response.end(wishes.isHead ? undefined : content)
      return
    }
    case 'stream':
      response.writeHead(status, headers).flushHeaders()
      await pump(response, body.chunks)
      return
    case 'watch':
      response.writeHead(status, headers)
      if (answer.headers.warning === undefined) response.flushHeaders()
      else response.write(SPACE)
      await pumpFrames(response, body.frames, wishes.watchKeepAliveMs ?? 0)
  }
}

async function pump(response: ServerResponse, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of chunks) {
      if (response.destroyed) return
      if (!response.write(chunk)) await drained(response)
    }
    response.end()
  } catch {
    // The status line is long gone: cutting the connection is the only way left to say that this is not the end.
    response.destroy()
  }
}

/**
 * Frames as lines, those of one turn in one piece. While nothing happens a single space goes out now
 * and then: it is legal between documents, and some clients give up on a silent watch.
 */
async function pumpFrames(response: ServerResponse, frames: WatchFrames, keepAliveMs: number): Promise<void> {
  let wroteLately = false
  const sendSpace = (): void => {
    if (!wroteLately && !response.writableNeedDrain) response.write(SPACE)
    wroteLately = false
  }
  const keepAlive = keepAliveMs > 0 ? setInterval(sendSpace, keepAliveMs).unref() : undefined
  try {
    for await (const frame of frames) {
      if (response.destroyed) break
      wroteLately = true
      const isTaken = response.write(linesFrom(frame, frames))
      // Node holds what was written back until the turn ends, when the answers of a whole group have gone out before it.
      response.socket?.uncork()
      if (!isTaken) await drained(response)
    }
    response.end()
  } catch {
    response.destroy()
  } finally {
    clearInterval(keepAlive)
  }
}

/** This line and those that are ready after it, up to what fits a few packets. */
function linesFrom(first: WatchFrame, frames: WatchFrames): string {
  let lines = first.line()
  while (lines.length < PIECE_LENGTH) {
    const frame = frames.takeReady?.()
    if (!frame) break
    lines += frame.line()
  }
  return lines
}

function drained(response: ServerResponse): Promise<void> {
  if (!response.writableNeedDrain || response.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
