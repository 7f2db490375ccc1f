import {
  CorralError,
  encodeOutputFrame,
  encodeOutputHeader,
  outputContentType,
  type ProcessExitRecord,
} from '@corral/protocol'
import type { OutputChunk } from './output-log.js'
import type { ProcessHandle } from './process-handle.js'
import { pullStream } from './pull-stream.js'

const heartbeatMs = 10_000
const shortBytes = 16 * 1024

export interface FrameReader {
  /** The next frame as pieces, with the last one behind it where both are there; undefined at the end. */
  next(): Promise<readonly Uint8Array[] | undefined>
  dispose(): Promise<void>
}

/**
 * The output from `offset` as frames. Following, it stays open until the process has ended and all output is sent; a
 * quiet process sends heartbeats.
 */
export async function outputFrames(
  handle: ProcessHandle,
  offset: number,
  follow: boolean,
  signal: AbortSignal,
): Promise<FrameReader> {
  const length = handle.record().output_bytes
  if (offset > length) {
    throw new CorralError('OffsetOutOfRange', `offset ${offset} lies beyond the ${length} bytes of output`)
  }
  const cursor = await handle.cursor(offset)
  const gone = new AbortController()
  const closed = AbortSignal.any([gone.signal, signal])
  let sentTo = offset
  let isDone = false
  /** Read behind a gap, which is told first. */
  let behindGap: OutputChunk | undefined

  const end = (exit: ProcessExitRecord): Uint8Array => {
    isDone = true
    return encodeOutputFrame({ type: 'exit', offset: sentTo, exit })
  }
  const next = async (): Promise<readonly Uint8Array[] | undefined> => {
    while (!isDone && !closed.aborted) {
      // Read before the cursor: output that was there when the end was seen is sent before the end.
      const { exit, output_bytes } = handle.record()
      const chunk = behindGap ?? (sentTo < output_bytes ? await cursor.next() : undefined)
      behindGap = undefined
      if (chunk && chunk.offset > sentTo) {
        const gap = { type: 'gap', offset: sentTo, bytes: chunk.offset - sentTo } as const
        behindGap = chunk
        sentTo = chunk.offset
        return [encodeOutputFrame(gap)]
      }
      if (chunk) {
        sentTo = chunk.offset + chunk.data.length
        const data = [encodeOutputHeader({ type: 'data', ...chunk }), chunk.data]
        // A short command's output and end go together: each costs every hop to the reader as much as the other.
        return exit && sentTo === output_bytes && chunk.data.length <= shortBytes ? [...data, end(exit)] : data
      }
      if (exit) return [end(exit)]
      if (!follow) return undefined
      const waited = performance.now()
      await handle.changed.wait(heartbeatMs, closed)
      if (performance.now() - waited >= heartbeatMs - 50) {
        return [encodeOutputFrame({ type: 'heartbeat', offset: sentTo })]
      }
    }
    return undefined
  }
  const dispose = async () => {
    gone.abort()
    await cursor.close()
  }
  return { next, dispose }
}

/** The same as the body of an answer. A reader that stops reading stops the stream, and holds one chunk. */
export async function outputResponse(
  handle: ProcessHandle,
  offset: number,
  follow: boolean,
  signal: AbortSignal,
): Promise<Response> {
  const { next, dispose } = await outputFrames(handle, offset, follow, signal)
  let isFresh = follow
  const first = async (): Promise<Uint8Array | undefined> => {
    if (!isFresh) {
      const pieces = await next()
      return pieces && Buffer.concat(pieces)
    }
    // The first frame at once: some servers send nothing, not even the status, before there is a body.
    isFresh = false
    return encodeOutputFrame({ type: 'heartbeat', offset })
  }
  return new Response(pullStream(first, dispose), { headers: { 'content-type': outputContentType } })
}
