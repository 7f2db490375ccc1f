import { type ProcessExitRecord, processExitSchema } from './daemon-api.js'

/**
 * The output of a process as a stream of frames, all numbers big-endian:
 *
 *     byte 0      kind: 1 stdout, 2 stderr, 3 exit, 4 heartbeat, 5 gap
 *     bytes 1-3   zero
 *     bytes 4-7   length of the payload
 *     bytes 8-15  offset of the payload's first byte in the interleaved output
 *     then        the payload: bytes of output, or the exit record as JSON, or nothing
 *
 * A reader that has seen a frame resumes at `offset + length`. The exit frame is last and comes only after the process
 * ended; a stream without one was cut, or was not asked to follow. Heartbeats tell a quiet process from a dead line. A gap
 * stands for output that is no longer kept; its payload is the number of bytes, 64 bit.
 */
export const outputContentType = 'application/vnd.corral.output'
export const outputHeaderBytes = 16
export const maxOutputPayloadBytes = 64 * 1024

export type OutputStream = 'stdout' | 'stderr'
export type OutputFrame =
  | { readonly type: 'data'; readonly stream: OutputStream; readonly offset: number; readonly data: Uint8Array }
  | { readonly type: 'exit'; readonly offset: number; readonly exit: ProcessExitRecord }
  | { readonly type: 'heartbeat'; readonly offset: number }
  | { readonly type: 'gap'; readonly offset: number; readonly bytes: number }

const kinds = { stdout: 1, stderr: 2, exit: 3, heartbeat: 4, gap: 5 } as const
const empty = new Uint8Array(0)

/** One frame as bytes. */
export function encodeOutputFrame(frame: OutputFrame): Uint8Array {
  switch (frame.type) {
    case 'data':
      return encode(kinds[frame.stream], frame.offset, frame.data)
    case 'exit':
      return encode(kinds.exit, frame.offset, new TextEncoder().encode(JSON.stringify(frame.exit)))
    case 'heartbeat':
      return encode(kinds.heartbeat, frame.offset, empty)
    case 'gap': {
      const payload = new Uint8Array(8)
      new DataView(payload.buffer).setBigUint64(0, BigInt(frame.bytes))
      return encode(kinds.gap, frame.offset, payload)
    }
  }
}

function encode(kind: number, offset: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(outputHeaderBytes + payload.length)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, kind)
  view.setUint32(4, payload.length)
  view.setBigUint64(8, BigInt(offset))
  bytes.set(payload, outputHeaderBytes)
  return bytes
}

/** A frame stream that breaks the format. */
export class OutputFormatError extends Error {
  override readonly name: string = 'OutputFormatError'
  readonly code = 'ProtocolViolation'
}

/**
 * Cuts a byte stream into frames, whatever the chunk borders. Holds at most one frame; a frame longer than the contract
 * allows throws an `OutputFormatError`, since the sender is not trusted.
 */
export class OutputDecoder {
  #pending: Uint8Array = empty

  /** The frames completed by `chunk`. */
  push(chunk: Uint8Array): OutputFrame[] {
    let bytes = chunk
    if (this.#pending.length > 0) {
      bytes = new Uint8Array(this.#pending.length + chunk.length)
      bytes.set(this.#pending)
      bytes.set(chunk, this.#pending.length)
    }
    const frames: OutputFrame[] = []
    let position = 0
    while (bytes.length - position >= outputHeaderBytes) {
      const view = new DataView(bytes.buffer, bytes.byteOffset + position, outputHeaderBytes)
      const length = view.getUint32(4)
      if (length > maxOutputPayloadBytes) throw new OutputFormatError(`a frame of ${length} bytes is too long`)
      const end = position + outputHeaderBytes + length
      if (end > bytes.length) break
      const payload = bytes.subarray(position + outputHeaderBytes, end)
      frames.push(decode(view.getUint8(0), Number(view.getBigUint64(8)), payload))
      position = end
    }
    // A copy, so that a small rest does not keep a large chunk alive.
    this.#pending = position === bytes.length ? empty : bytes.slice(position)
    return frames
  }

  /** Whether the stream may end here: no frame is half received. */
  get isComplete(): boolean {
    return this.#pending.length === 0
  }
}

function decode(kind: number, offset: number, payload: Uint8Array): OutputFrame {
  if (!Number.isSafeInteger(offset)) throw new OutputFormatError('a frame has an impossible offset')
  switch (kind) {
    case kinds.stdout:
      return { type: 'data', stream: 'stdout', offset, data: payload }
    case kinds.stderr:
      return { type: 'data', stream: 'stderr', offset, data: payload }
    case kinds.exit:
      return { type: 'exit', offset, exit: parseExit(payload) }
    case kinds.heartbeat:
      return { type: 'heartbeat', offset }
    case kinds.gap:
      return { type: 'gap', offset, bytes: parseGap(payload) }
    default:
      throw new OutputFormatError(`a frame has the unknown kind ${kind}`)
  }
}

function parseGap(payload: Uint8Array): number {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length)
  const bytes = payload.length === 8 ? Number(view.getBigUint64(0)) : 0
  if (!Number.isSafeInteger(bytes) || bytes <= 0) throw new OutputFormatError('a gap has an impossible length')
  return bytes
}

function parseExit(payload: Uint8Array): ProcessExitRecord {
  try {
    return processExitSchema.parse(JSON.parse(new TextDecoder().decode(payload)))
  } catch (cause) {
    throw new OutputFormatError('the exit frame does not hold an exit record', { cause })
  }
}
