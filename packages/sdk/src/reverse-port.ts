import { once, setMaxListeners } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import type { ByteStream } from '@corral/ports'
import { reverseHandshake, reverseHost } from '@corral/protocol'
import { ByteStreamSocket } from './byte-stream-socket.js'
import { SandboxError, toSandboxError } from './sandbox-error.js'

export interface ReversePortOptions {
  /** Where connections from inside the sandbox end up. */
  readonly target: { readonly host: string; readonly port: number }
  /** Sent with every line, for a daemon that asks for tokens. */
  readonly authorization?: (() => string | Promise<string>) | undefined
  /** Connections passed at once; further ones wait inside. */
  readonly maxConnections?: number
  /** Told of every line that could not be parked. */
  readonly onError?: (error: SandboxError) => void
}

/** A port of the sandbox's loopback that leads to an address out here. */
export interface ReversePort extends AsyncDisposable {
  readonly port: number
  /** Settles when the first line is parked; rejects where the daemon refuses the port, or after `close`. */
  readonly ready: Promise<void>
  /** Drops every line and connection. The daemon keeps the port open for the next `openReversePort`. */
  close(): Promise<void>
}

/** Lines that wait inside, so that a connection finds one at once. */
const spareLines = 2
/** A line that waited this long is replaced: what lies between drops silent connections without a word. */
const renewMs = 45_000
const longestPauseMs = 5_000

/** Opens one connection to the daemon's port. */
type Dial = (signal: AbortSignal) => Promise<ByteStream>

/** Parks lines at the daemon and joins each one that is taken to the target. Lines that break are opened again until `close`. */
export function openReversePort(dial: Dial, port: number, options: ReversePortOptions): ReversePort {
  return new ParkedLines(dial, port, options)
}

class ParkedLines implements ReversePort {
  readonly port: number
  readonly ready: Promise<void>
  readonly #dial: Dial
  readonly #options: ReversePortOptions
  readonly #closing = new AbortController()
  readonly #sockets = new Set<{ destroy(): void }>()
  #passing = 0
  #parking = 0
  #failures = 0
  #settle: { resolve(): void; reject(error: Error): void } | undefined

  constructor(dial: Dial, port: number, options: ReversePortOptions) {
    this.port = port
    this.#dial = dial
    this.#options = options
    // Every line listens for the end of all of them.
    setMaxListeners(0, this.#closing.signal)
    this.ready = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    this.ready.catch(() => {}) // a caller that awaits `ready` still gets the error; without this line one that does not would end the process
    this.#fill()
  }

  async close(): Promise<void> {
    this.#closing.abort(new SandboxError('Aborted', `the reverse port ${this.port} was closed`))
    this.#settle?.reject(new SandboxError('Aborted', `the reverse port ${this.port} was closed`))
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #fill(): void {
    const { maxConnections = 64 } = this.#options
    while (!this.#closing.signal.aborted && this.#parking < spareLines && this.#passing < maxConnections) {
      this.#parking += 1
      void this.#line().finally(() => {
        this.#parking -= 1
        this.#fill()
      })
    }
  }

  /** One line, from its opening until it is taken or given up. */
  async #line(): Promise<void> {
    const { signal } = this.#closing
    let line: ByteStreamSocket | undefined
    try {
      line = this.#tracked(new ByteStreamSocket(await this.#dial(signal)))
      const isParked = await this.#parkInTime(line)
      this.#settle?.resolve()
      const parkedMs = performance.now()
      if (!isParked || !(await this.#isTaken(line))) {
        line.destroy()
        // Something between that ends every line at once is not asked in a loop.
        if (performance.now() - parkedMs < 1_000) await pause(200, signal)
        return
      }
      const target = await this.#connect(line)
      this.#failures = 0
      this.#passing += 1
      void this.#join(line, target).finally(() => {
        this.#passing -= 1
        this.#fill()
      })
    } catch (error) {
      line?.destroy()
      if (signal.aborted) return
      const failure = toSandboxError(error)
      this.#options.onError?.(failure)
      // A port that another program inside has stays that program's.
      if (failure.code === 'Conflict' || failure.code === 'Unauthorized') this.#settle?.reject(failure)
      this.#failures += 1
      await pause(Math.min(longestPauseMs, 100 * 2 ** this.#failures), signal)
    }
  }

  /** A line that is not answered breaks, and what waits for it fails. */
  async #parkInTime(line: ByteStreamSocket): Promise<true> {
    const timer = setTimeout(() => line.destroy(), parkMs)
    timer.unref()
    return await this.#park(line).finally(() => clearTimeout(timer))
  }

  async #park(line: ByteStreamSocket): Promise<true> {
    const { authorization } = this.#options
    const token = authorization ? `authorization: ${await authorization()}\r\n` : ''
    const authority = `${reverseHost}:${this.port}`
    line.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${token}\r\n`)
    const head = await readHead(line)
    if (/^HTTP\/1\.1 200 /.test(head)) return true
    throw await refusal(line, head)
  }

  /** Whether a connection wants the line; false once it has waited too long or broke. */
  #isTaken(line: ByteStreamSocket): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (isTaken: boolean): void => {
        clearTimeout(timer)
        line.off('readable', look).off('close', fail)
        resolve(isTaken)
      }
      const fail = (): void => done(false)
      const look = (): void => {
        const asked = line.read(1) as Buffer | null
        if (asked) done(asked[0] === reverseHandshake)
      }
      const timer = setTimeout(fail, renewMs)
      timer.unref()
      line.on('readable', look).once('close', fail)
      look()
    })
  }

  async #connect(line: ByteStreamSocket): Promise<Socket> {
    const { host, port } = this.#options.target
    const target = this.#tracked(connectTcp({ host, port, noDelay: true }))
    await once(target, 'connect')
    line.write(Uint8Array.of(reverseHandshake))
    return target
  }

  async #join(line: ByteStreamSocket, target: Socket): Promise<void> {
    line.pipe(target)
    target.pipe(line)
    await Promise.race([closed(line), closed(target)])
    line.destroy()
    target.destroy()
  }

  #tracked<T extends Socket | ByteStreamSocket>(socket: T): T {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
    if (this.#closing.signal.aborted) socket.destroy()
    return socket
  }
}

const maxHeadBytes = 8_192
/** A refusal is a few words; the daemon that sends it may be another program by now. */
const maxRefusalBytes = 65_536
/** How long the daemon may take to answer, its refusal included. */
const parkMs = 30_000

/** The answer up to its empty line; what follows stays in the line. */
async function readHead(line: ByteStreamSocket): Promise<string> {
  let head = ''
  while (!head.endsWith('\r\n\r\n')) {
    const byte = line.read(1) as Buffer | null
    if (byte) head += byte.toString('latin1')
    else if (line.destroyed || line.readableEnded) throw new SandboxError('ConnectionLost', 'the line broke')
    else await Promise.race([once(line, 'readable'), once(line, 'close'), once(line, 'end')])
    if (head.length > maxHeadBytes) throw new SandboxError('ProtocolViolation', 'the daemon answered without an end')
  }
  return head
}

async function refusal(line: ByteStreamSocket, head: string): Promise<SandboxError> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of line) {
    chunks.push(chunk as Buffer)
    bytes += (chunk as Buffer).length
    if (bytes > maxRefusalBytes)
      throw new SandboxError('ProtocolViolation', 'the daemon refuses the port without an end')
  }
  const text = Buffer.concat(chunks).toString('utf8')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string } }
    return toSandboxError(Object.assign(new Error(error.message), { code: error.code }))
  } catch {
    return new SandboxError('Unsupported', `the daemon does not know reverse ports (${status})`, {
      hint: 'It is of an earlier release: use its newer image.',
    })
  }
}

function closed(socket: Socket | ByteStreamSocket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve()
    else socket.once('close', () => resolve())
  })
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    timer.unref()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
