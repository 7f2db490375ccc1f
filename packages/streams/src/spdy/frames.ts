/** A frame, or a part of one: data frames are handed on as they arrive, so none is ever held whole. */
export type SpdyFrame =
  | { readonly type: 'data'; readonly streamId: number; readonly payload: Buffer; readonly fin: boolean }
  | { readonly type: 'synStream'; readonly streamId: number; readonly fin: boolean; readonly block: Buffer }
  | { readonly type: 'headers'; readonly streamId: number; readonly fin: boolean; readonly block: Buffer }
  | { readonly type: 'rstStream'; readonly streamId: number }
  | { readonly type: 'ping'; readonly raw: Buffer }
  | { readonly type: 'goAway' }
  /** Settings, window updates and whatever else needs no answer. */
  | { readonly type: 'ignored' }

const headerBytes = 8
const finFlag = 1
/** Header blocks of the clients we serve stay below one kilobyte; anything near this is an attack. */
const maxControlBytes = 64 * 1024
const maxDataBytes = 32 * 1024

/** Cuts a stream of bytes into frames. Throws on a frame no honest client sends. */
export class SpdyDecoder {
  private rest: Buffer = Buffer.alloc(0)
  private data: { streamId: number; left: number; fin: boolean } | undefined;

  *push(chunk: Uint8Array): Generator<SpdyFrame> {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    this.rest = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes])
    for (let frame = this.next(); frame; frame = this.next()) yield frame
  }

  private next(): SpdyFrame | undefined {
    if (this.data) return this.nextData(this.data)
    if (this.rest.length < headerBytes) return undefined
    const length = this.rest.readUIntBE(5, 3)
    const flags = this.rest[4] ?? 0
    const first = this.rest.readUInt32BE(0)
    if (first >>> 31 === 0) {
      this.take(headerBytes)
      return this.nextData({ streamId: first, left: length, fin: (flags & finFlag) !== 0 })
    }
    if (length > maxControlBytes) throw new RangeError(`a control frame of ${length} bytes`)
    if (this.rest.length < headerBytes + length) return undefined
    const raw = this.take(headerBytes + length)
    return controlFrame(first & 0xffff, raw, (flags & finFlag) !== 0)
  }

  private nextData(data: { streamId: number; left: number; fin: boolean }): SpdyFrame | undefined {
    this.data = data
    if (data.left > 0 && this.rest.length === 0) return undefined
    const payload = this.take(Math.min(data.left, this.rest.length))
    data.left -= payload.length
    const isLast = data.left === 0
    if (isLast) this.data = undefined
    return { type: 'data', streamId: data.streamId, payload, fin: isLast && data.fin }
  }

  private take(count: number): Buffer {
    const taken = this.rest.subarray(0, count)
    this.rest = this.rest.subarray(count)
    return taken
  }
}

function controlFrame(type: number, raw: Buffer, fin: boolean): SpdyFrame {
  const payload = raw.subarray(headerBytes)
  const streamId = payload.length >= 4 ? payload.readUInt32BE(0) & 0x7fffffff : 0
  switch (type) {
    case 1:
      if (payload.length < 10) throw new RangeError('a SYN_STREAM frame that is too short')
      return { type: 'synStream', streamId, fin, block: payload.subarray(10) }
    case 3:
      return { type: 'rstStream', streamId }
    case 6:
      return { type: 'ping', raw }
    case 7:
      return { type: 'goAway' }
    case 8:
      if (payload.length < 4) throw new RangeError('a HEADERS frame that is too short')
      return { type: 'headers', streamId, fin, block: payload.subarray(4) }
    default:
      return { type: 'ignored' }
  }
}

/** Data frames of at most 32 KiB, which is what clients allocate for. Empty with `fin` is the half-close. */
export function* dataFrames(streamId: number, payload: Uint8Array, fin: boolean): Generator<Buffer> {
  let start = 0
  do {
    const part = payload.subarray(start, start + maxDataBytes)
    start += part.length
    const frame = Buffer.allocUnsafe(headerBytes + part.length)
    frame.writeUInt32BE(streamId, 0)
    frame[4] = fin && start >= payload.length ? finFlag : 0
    frame.writeUIntBE(part.length, 5, 3)
    frame.set(part, headerBytes)
    yield frame
  } while (start < payload.length)
}

export function synReply(streamId: number, block: Uint8Array): Buffer {
  return control(2, streamId, block)
}

/** Status 1 says protocol error, 3 refused, 5 cancelled. */
export function rstStream(streamId: number, status: 1 | 3 | 5): Buffer {
  const code = Buffer.alloc(4)
  code.writeUInt32BE(status)
  return control(3, streamId, code)
}

export function goAway(lastStreamId: number): Buffer {
  return control(7, lastStreamId, Buffer.alloc(4))
}

function control(type: number, id: number, body: Uint8Array): Buffer {
  const frame = Buffer.alloc(headerBytes + 4 + body.length)
  frame.writeUInt16BE(0x8003, 0)
  frame.writeUInt16BE(type, 2)
  frame.writeUIntBE(4 + body.length, 5, 3)
  frame.writeUInt32BE(id, headerBytes)
  frame.set(body, headerBytes + 4)
  return frame
}
