import { ByteQueue, type ByteStream } from '@corral/ports'
import { dataFrames, goAway, rstStream, SpdyDecoder, type SpdyFrame, synReply } from './frames.js'
import { HeaderReader, HeaderWriter } from './header-blocks.js'

/** More streams open at once than any client of a pod needs. */
const maxStreams = 2_048

/** One stream a client opened. Reading it ends at the client's FIN; `destroy` resets it. */
export interface SpdyStream extends ByteStream {
  readonly id: number
  readonly headers: ReadonlyMap<string, string>
}

interface OpenStream {
  readonly incoming: ByteQueue
  readonly stream: SpdyStream
  hasEnded: boolean
  remoteEnded: boolean
  drained: () => void
}

export interface SpdySession {
  /** Reads frames until the client ends the connection or breaks the protocol. Never rejects. */
  run(onStream: (stream: SpdyStream) => void): Promise<void>
  /** Says that no more streams are taken, and lets go of the connection once the client does or had `graceMs`. */
  finish(graceMs: number): Promise<void>
}

/**
 * The server's end of SPDY/3.1 over any byte stream. The protocol as clients speak it has no flow control, so a full
 * stream holds up reading from the whole connection: memory stays bounded by streams times `highWaterBytes`.
 */
export function spdySession(link: ByteStream, highWaterBytes: number): SpdySession {
  const streams = new Map<number, OpenStream>()
  const decoder = new SpdyDecoder()
  const reader = new HeaderReader()
  const writer = new HeaderWriter()
  let lastStreamId = 0
  let markEnded = () => {}
  const ended = new Promise<void>((resolve) => {
    markEnded = resolve
  })

  function open(id: number, headers: Map<string, string>): OpenStream {
    const incoming = new ByteQueue(highWaterBytes, () => entry.drained())
    const stream: SpdyStream = {
      id,
      headers,
      [Symbol.asyncIterator]: () => incoming[Symbol.asyncIterator](),
      async write(chunk) {
        if (entry.hasEnded || !streams.has(id)) throw new Error('the stream is closed')
        for (const frame of dataFrames(id, chunk, false)) await link.write(frame)
      },
      end() {
        if (entry.hasEnded || !streams.has(id)) return
        entry.hasEnded = true
        for (const frame of dataFrames(id, Buffer.alloc(0), true)) ignoreFailure(link.write(frame))
        forgetIfDone(entry)
      },
      destroy() {
        if (!streams.delete(id)) return
        incoming.discard()
        incoming.end()
        ignoreFailure(link.write(rstStream(id, 5)))
      },
    }
    const entry: OpenStream = { incoming, stream, hasEnded: false, remoteEnded: false, drained: () => {} }
    streams.set(id, entry)
    return entry
  }

  function forgetIfDone(entry: OpenStream): void {
    if (entry.hasEnded && entry.remoteEnded) streams.delete(entry.stream.id)
  }

  function endIncoming(entry: OpenStream): void {
    entry.remoteEnded = true
    entry.incoming.end()
    forgetIfDone(entry)
  }

  async function onFrame(frame: SpdyFrame, onStream: (stream: SpdyStream) => void): Promise<void> {
    switch (frame.type) {
      case 'data': {
        const entry = streams.get(frame.streamId)
        if (!entry) return // reset by us while it was on the way
        entry.incoming.push(frame.payload)
        if (frame.fin) endIncoming(entry)
        else if (entry.incoming.isFull) await roomIn(entry)
        return
      }
      case 'synStream': {
        const headers = await reader.read(frame.block)
        if (frame.streamId <= lastStreamId || frame.streamId % 2 === 0) throw new Error('a stream id out of order')
        lastStreamId = frame.streamId
        if (streams.size >= maxStreams) return link.write(rstStream(frame.streamId, 3))
        const entry = open(frame.streamId, headers)
        await link.write(synReply(frame.streamId, writer.emptyBlock()))
        if (frame.fin) endIncoming(entry)
        onStream(entry.stream)
        return
      }
      case 'headers': {
        await reader.read(frame.block) // keeps the shared compression context in step
        const entry = streams.get(frame.streamId)
        if (entry && frame.fin) endIncoming(entry)
        return
      }
      case 'rstStream': {
        const entry = streams.get(frame.streamId)
        if (!entry) return
        streams.delete(frame.streamId)
        entry.incoming.end(new Error('the client reset the stream'))
        return
      }
      case 'ping':
        return link.write(frame.raw)
      case 'goAway':
      case 'ignored':
        return
    }
  }

  return {
    async run(onStream) {
      try {
        for await (const chunk of link) {
          for (const frame of decoder.push(chunk)) await onFrame(frame, onStream)
        }
      } catch {
        // A broken connection and a broken protocol end the same way: every stream fails below.
      } finally {
        for (const entry of streams.values()) {
          entry.incoming.end(entry.remoteEnded ? undefined : new Error('the connection is closed'))
        }
        streams.clear()
        reader.close()
        link.destroy()
        markEnded()
      }
    },
    async finish(graceMs) {
      ignoreFailure(link.write(goAway(lastStreamId)))
      // There is no reader left: a full stream must not keep us from seeing the client's end.
      for (const entry of streams.values()) entry.incoming.discard()
      const timer = setTimeout(() => link.destroy(), graceMs)
      await ended
      clearTimeout(timer)
    },
  }
}

function roomIn(entry: OpenStream): Promise<void> {
  return new Promise((resolve) => {
    entry.drained = resolve
  })
}

/** For frames whose loss the end of the connection reports anyway. */
function ignoreFailure(promise: Promise<void>): void {
  promise.catch(() => {})
}
