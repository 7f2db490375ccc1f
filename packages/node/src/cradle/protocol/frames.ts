/** The frames between platform, cradle and supervisor; `native/protocol.h` describes them. */
export const Frame = {
  main: 0x01,
  exec: 0x02,
  dial: 0x03,
  signal: 0x04,
  stat: 0x05,
  kill: 0x06,
  stdin: 0x10,
  eof: 0x11,
  resize: 0x12,
  stdout: 0x21,
  stderr: 0x22,
  exit: 0x23,
  started: 0x24,
  error: 0x25,
  state: 0x26,
  done: 0x27,
} as const

export const headerBytes = 5
export const maxPayloadBytes: number = 64 * 1024
export const maxSpecBytes: number = 1024 * 1024
/** Of what a supervisor says about an end: it is kept with the cell, and shown. */
const maxMessageBytes = 4096

/** One frame, header and payload in one buffer. */
export function encodeFrame(type: number, payload: Uint8Array | string = ''): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
  const frame = Buffer.allocUnsafe(headerBytes + bytes.length)
  frame[0] = type
  frame.writeUInt32LE(bytes.length, 1)
  frame.set(bytes, headerBytes)
  return frame
}

/** Standard input cut into frames the supervisor accepts. */
export function encodeStdin(chunk: Uint8Array): Buffer[] {
  const frames: Buffer[] = []
  for (let start = 0; start < chunk.length; start += maxPayloadBytes) {
    frames.push(encodeFrame(Frame.stdin, chunk.subarray(start, start + maxPayloadBytes)))
  }
  return frames
}

export function encodeResize(columns: number, rows: number): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt16LE(Math.max(0, Math.min(0xffff, columns)), 0)
  payload.writeUInt16LE(Math.max(0, Math.min(0xffff, rows)), 2)
  return encodeFrame(Frame.resize, payload)
}

export interface ProcessSpec {
  tty: boolean
  stdin: boolean
  workingDir: string
  /** The pod's address; for the main process only. */
  podIP: string
  env: Readonly<Record<string, string>>
  argv: readonly string[]
}

/** A process description as NUL-terminated strings. Throws a `TypeError` where a string contains NUL itself. */
export function encodeSpec(spec: ProcessSpec): Buffer {
  const env = Object.entries(spec.env).map(([name, value]) => `${name}=${value}`)
  const flags = `${spec.tty ? 't' : ''}${spec.stdin ? 'i' : ''}`
  const strings = [flags, spec.workingDir, spec.podIP, String(env.length), ...env, ...spec.argv]
  return Buffer.from(nulTerminated(strings, 'a process description'))
}

/** Strings, each ended by NUL. Throws a `TypeError` where one has a NUL in it: what follows it would be read as another string. */
export function nulTerminated(strings: readonly string[], what: string): string {
  if (strings.some((text) => text.includes('\0'))) throw new TypeError(`${what} must not contain NUL`)
  return strings.map((text) => `${text}\0`).join('')
}

/** The reverse of `encodeSpec`, or undefined for anything malformed. */
export function decodeSpec(payload: Uint8Array): ProcessSpec | undefined {
  if (payload.at(-1) !== 0) return undefined
  const strings = Buffer.from(payload).toString().split('\0').slice(0, -1)
  const [flags, workingDir, podIP, count, ...rest] = strings
  const variables = Number(count)
  if (flags === undefined || workingDir === undefined || podIP === undefined) return undefined
  if (!Number.isInteger(variables) || variables < 0 || rest.length <= variables) return undefined
  const env: Record<string, string> = {}
  for (const entry of rest.slice(0, variables)) {
    const equals = entry.indexOf('=')
    if (equals > 0) env[entry.slice(0, equals)] = entry.slice(equals + 1)
  }
  return {
    tty: flags.includes('t'),
    stdin: flags.includes('i'),
    workingDir,
    podIP,
    env,
    argv: rest.slice(variables),
  }
}

export function encodeExit(exitCode: number, signal: number, message = ''): Buffer {
  const payload = Buffer.alloc(8 + Buffer.byteLength(message))
  payload.writeInt32LE(exitCode, 0)
  payload.writeInt32LE(signal, 4)
  payload.write(message, 8)
  return encodeFrame(Frame.exit, payload)
}

export function decodeExit(payload: Buffer): { exitCode: number; signal?: number; message?: string } {
  const signal = payload.readInt32LE(4)
  const message = payload.toString('utf8', 8, 8 + maxMessageBytes)
  return { exitCode: payload.readInt32LE(0), ...(signal ? { signal } : {}), ...(message ? { message } : {}) }
}

export function decodeError(payload: Buffer): { code: string; message: string } {
  const text = payload.toString()
  const space = text.indexOf(' ')
  return space < 0 ? { code: text, message: text } : { code: text.slice(0, space), message: text.slice(space + 1) }
}

/**
 * Cuts a byte stream into frames. `take` answers the frames that became complete with this chunk; payloads are views
 * that stay valid. A frame above `limitBytes` throws a `RangeError`: the other side is not speaking this protocol.
 */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0)
  #stopped = false
  constructor(private readonly limitBytes: number = maxSpecBytes) {}

  *take(chunk: Buffer): Generator<{ type: number; payload: Buffer }> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    while (!this.#stopped && this.#rest.length >= headerBytes) {
      const size = this.#rest.readUInt32LE(1)
      if (size > this.limitBytes) throw new RangeError(`frame of ${size} bytes`)
      if (this.#rest.length < headerBytes + size) return
      const type = this.#rest[0] ?? 0
      const payload = this.#rest.subarray(headerBytes, headerBytes + size)
      this.#rest = this.#rest.subarray(headerBytes + size)
      yield { type, payload }
    }
  }

  /** Stops cutting: what follows the frame being handled is raw bytes. */
  stop(): Buffer {
    this.#stopped = true
    return this.#rest
  }
}
