import { type ProcessExitRecord, processExitSchema } from './daemon-api.js'

/**
 * The output of a process as a stream of frames, all numbers big-endian:
 *
 *     byte 0      kind: 1 stdout, 2 stderr, 3 exit, 4 heartbeat, 5 gap, 6 failure
 *     bytes 1-3   zero
 *     bytes 4-7   length of the payload
 *     bytes 8-15  offset of the payload's first byte in the interleaved output
 *     then        the payload: bytes of output, or the exit record as JSON, or nothing
 *
 * A reader that has seen a frame resumes at `offset + length`. The exit frame is last and comes only after the process
 * ended; a stream without one was cut, or was not asked to follow. Heartbeats tell a quiet process from a dead line. A gap
 * stands for output that is no longer kept; its payload is the number of bytes, 64 bit. A failure, on a process line alone,
 * says instead of all others why there is no process; its payload is an error body as JSON.
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
  | { readonly type: 'failure'; readonly offset: number; readonly code: string; readonly message: string }

const kinds = { stdout: 1, stderr: 2, exit: 3, heartbeat: 4, gap: 5, failure: 6 } as const
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
    case 'failure': {
      const { code, message } = frame
      // Cut so that it fits whatever its characters take.
      const body = JSON.stringify({ error: { code, message: message.slice(0, 4_000) } })
      return encode(kinds.failure, frame.offset, new TextEncoder().encode(body))
    }
  }
}

/** What comes before the bytes of a frame of output: for a sender that can pass them on without copying them behind it. */
export function encodeOutputHeader({ stream, offset, data }: OutputFrame & { type: 'data' }): Uint8Array {
  return encodeHeader(new Uint8Array(outputHeaderBytes), kinds[stream], offset, data.length)
}

function encode(kind: number, offset: number, payload: Uint8Array): Uint8Array {
  const bytes = encodeHeader(new Uint8Array(outputHeaderBytes + payload.length), kind, offset, payload.length)
  bytes.set(payload, outputHeaderBytes)
  return bytes
}

function encodeHeader(bytes: Uint8Array, kind: number, offset: number, length: number): Uint8Array {
  const view = new DataView(bytes.buffer)
  view.setUint8(0, kind)
  view.setUint32(4, length)
  view.setBigUint64(8, BigInt(offset))
  return bytes
}

/** A frame stream that breaks the format. */
export class OutputFormatError extends Error {
  override readonly name: string = 'OutputFormatError'
  readonly code = 'ProtocolViolation'
}

/**
 * Cuts a byte stream into frames, whatever the chunk borders. Output is handed on as it comes, also a part of a frame: it is
 * never copied and never waits for the rest. Anything else is held until it is whole; a frame longer than the contract
 * allows throws an `OutputFormatError`, since the sender is not trusted.
 */
export class OutputDecoder {
  #pending: Uint8Array = empty
  /** What is still to come of a frame of output whose header was read. */
  #open: { kind: number; offset: number; left: number } | undefined

  /** The frames completed by `chunk`, and what it has of the next one's output. */
  push(chunk: Uint8Array): OutputFrame[] {
    let bytes = chunk
    if (this.#pending.length > 0) {
      bytes = new Uint8Array(this.#pending.length + chunk.length)
      bytes.set(this.#pending)
      bytes.set(chunk, this.#pending.length)
    }
    const frames: OutputFrame[] = []
    let position = 0
    for (;;) {
      if (this.#open) {
        const part = bytes.subarray(position, position + this.#open.left)
        if (part.length === 0) break
        frames.push(decode(this.#open.kind, this.#open.offset, part))
        position += part.length
        const left = this.#open.left - part.length
        this.#open = left > 0 ? { kind: this.#open.kind, offset: this.#open.offset + part.length, left } : undefined
        continue
      }
      if (bytes.length - position < outputHeaderBytes) break
      const view = new DataView(bytes.buffer, bytes.byteOffset + position, outputHeaderBytes)
      const kind = view.getUint8(0)
      const length = view.getUint32(4)
      const offset = Number(view.getBigUint64(8))
      if (length > maxOutputPayloadBytes) throw new OutputFormatError(`a frame of ${length} bytes is too long`)
      if (length > 0 && (kind === kinds.stdout || kind === kinds.stderr)) {
        position += outputHeaderBytes
        this.#open = { kind, offset, left: length }
        continue
      }
      const end = position + outputHeaderBytes + length
      if (end > bytes.length) break
      frames.push(decode(kind, offset, bytes.subarray(position + outputHeaderBytes, end)))
      position = end
    }
    // A copy, so that a small rest does not keep a large chunk alive.
    this.#pending = position === bytes.length ? empty : bytes.slice(position)
    return frames
  }

  /** Whether the stream may end here: no frame is half received. */
  get isComplete(): boolean {
    return this.#pending.length === 0 && !this.#open
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
    case kinds.failure:
      return { type: 'failure', offset, ...parseFailure(payload) }
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

function parseFailure(payload: Uint8Array): { code: string; message: string } {
  try {
    const { error } = JSON.parse(new TextDecoder().decode(payload)) as { error?: { code?: unknown; message?: unknown } }
    const { code, message } = error ?? {}
    if (typeof code === 'string' && typeof message === 'string') return { code, message }
  } catch {
    // Not JSON: no error either.
  }
  throw new OutputFormatError('the failure frame does not hold an error')
}

function parseExit(payload: Uint8Array): ProcessExitRecord {
  try {
    return processExitSchema.parse(JSON.parse(new TextDecoder().decode(payload)))
  } catch (cause) {
    throw new OutputFormatError('the exit frame does not hold an exit record', { cause })
  }
}
