import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Logger } from '@corral/ports'
import { CorralError, reverseHandshake } from '@corral/protocol'

/** How long a connection inside waits for a client outside to take it. */
const waitMs = 60_000
/** How long a client outside may take to say that the way to the target is open. */
const answerMs = 10_000
const maxWaiting = 256
/** Lines may have died while they waited; a target that is not there fails every one of them. */
const maxUnanswered = 5

interface ReversePort {
  readonly server: Server
  /** Lines from outside that wait for a connection. */
  readonly parked: Set<Duplex>
  /** Connections inside that wait for a line, the oldest first. */
  readonly wanting: Set<(line: Duplex) => void>
}

/**
 * Ports on the sandbox's loopback that lead out: a client outside parks lines here, and each carries one connection that
 * was made inside. Nothing is passed before the other side of a line has said that it is alive and has reached its target.
 */
export class ReversePorts {
  readonly #ports = new Map<number, Promise<ReversePort>>()
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  /** Listens on the port; `Conflict` where another program has it. Safe to repeat. */
  async open(port: number): Promise<void> {
    await this.#listen(port)
  }

  /** Takes a line that waits for a connection. */
  async park(port: number, line: Duplex): Promise<void> {
    const { parked, wanting } = await this.#listen(port)
    const gone = (): void => {
      parked.delete(line)
      line.destroy()
    }
    // Read while it waits: the end of a connection that is not read is not noticed.
    line.on('error', gone).once('close', gone).on('readable', ignore)
    line.once('end', () => parked.has(line) && gone())
    if (line.destroyed) return
    const [waiting] = wanting
    if (waiting) waiting(line)
    else parked.add(line)
  }

  /** Whether a connection to the port would get through to its target now. */
  async check(port: number): Promise<boolean> {
    if (!this.#ports.has(port)) return false
    const line = await this.#openLine(await this.#listen(port), answerMs)
    line?.destroy()
    return line !== undefined
  }

  async close(): Promise<void> {
    for (const opening of this.#ports.values()) {
      const { server, parked } = await opening
      for (const line of parked) line.destroy()
      server.close()
    }
  }

  #listen(port: number): Promise<ReversePort> {
    const known = this.#ports.get(port)
    if (known) return known
    const opening = this.#open(port)
    this.#ports.set(port, opening)
    opening.catch(() => this.#ports.delete(port))
    return opening
  }

  async #open(port: number): Promise<ReversePort> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => void this.#pass(reverse, socket))
    const reverse: ReversePort = { server, parked: new Set(), wanting: new Set() }
    server.maxConnections = maxWaiting
    server.listen(port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new CorralError('Conflict', `port ${port} of the sandbox cannot be listened on (${code ?? String(error)})`)
    }
    this.#log.info('reverse port listening', { port })
    return reverse
  }

  async #pass(reverse: ReversePort, socket: Socket): Promise<void> {
    socket.on('error', () => undefined)
    const line = await this.#openLine(reverse, waitMs, socket)
    if (!line || socket.destroyed) {
      line?.destroy()
      socket.destroy()
      return
    }
    socket.once('close', () => socket.errored && line.destroy())
    line.once('close', () => socket.destroy())
    socket.pipe(line)
    line.pipe(socket)
  }

  /** A line whose other side has answered; lines that do not are given up one after the other. */
  async #openLine(reverse: ReversePort, limitMs: number, socket?: Socket): Promise<Duplex | undefined> {
    const deadlineMs = performance.now() + limitMs
    for (let tries = 0; tries < maxUnanswered; tries++) {
      const leftMs = deadlineMs - performance.now()
      const line = await takeLine(reverse, leftMs, socket)
      if (!line) return undefined
      if (await isAnswered(line, Math.min(answerMs, leftMs))) return line
      line.destroy()
    }
    return undefined
  }
}

function takeLine({ parked, wanting }: ReversePort, limitMs: number, socket?: Socket): Promise<Duplex | undefined> {
  const [ready] = parked
  if (ready) {
    parked.delete(ready)
    return Promise.resolve(ready)
  }
  if (limitMs <= 0) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const done = (line?: Duplex): void => {
      clearTimeout(timer)
      socket?.off('close', giveUp)
      wanting.delete(done)
      resolve(line)
    }
    const giveUp = (): void => done()
    const timer = setTimeout(giveUp, limitMs)
    socket?.once('close', giveUp)
    wanting.add(done)
  })
}

const ignore = (): void => undefined

/** Asks the other side; true once it has said that its target is open. What follows the answer stays in the line. */
function isAnswered(line: Duplex, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const done = (isOpen: boolean): void => {
      clearTimeout(timer)
      line.off('readable', look).off('readable', ignore).off('close', fail).off('end', fail)
      resolve(isOpen)
    }
    const fail = (): void => done(false)
    const look = (): void => {
      const answer = line.read(1) as Buffer | null
      if (answer) done(answer[0] === reverseHandshake)
    }
    const timer = setTimeout(fail, limitMs)
    if (line.destroyed || line.readableEnded) return fail()
    line.on('readable', look).once('close', fail).once('end', fail)
    line.write(Uint8Array.of(reverseHandshake))
  })
}
