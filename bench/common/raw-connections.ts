import { connect, type TLSSocket } from 'node:tls'

export interface Answer {
  status: number
  body: Buffer
}

interface Waiting {
  resolve(answer: Answer): void
  reject(error: Error): void
}

/**
 * One kept TLS connection that has one HTTP/1.1 request on its way at a time. It knows only what a load needs (answers
 * with a length), because on a machine they share a client that does more hides the server's speed behind its own cost.
 */
class RawConnection {
  #waiting: Waiting | undefined
  #received: Buffer | undefined

  constructor(readonly socket: TLSSocket) {
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the server closed the connection')))
  }

  send(request: Buffer | string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.socket.write(request)
    })
  }

  #receive(chunk: Buffer): void {
    const received = this.#received ? Buffer.concat([this.#received, chunk]) : chunk
    this.#received = received
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = received.toString('latin1', 0, headEnd)
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    if (length === undefined) {
      this.#fail(new Error(`an answer without a length: ${head}`))
      return
    }
    const bodyStart = headEnd + 4
    if (received.length < bodyStart + Number(length)) return
    const waiting = this.#waiting
    this.#waiting = undefined
    this.#received = undefined
    waiting?.resolve({ status: Number(head.slice(9, 12)), body: received.subarray(bodyStart) })
  }

  #fail(error: Error): void {
    this.#waiting?.reject(error)
    this.#waiting = undefined
    this.socket.destroy()
  }
}

/** A fixed number of connections to one server; a request waits for none of the others. */
export class RawConnections {
  readonly #idle: RawConnection[] = []
  readonly #all: RawConnection[] = []
  readonly #waiting: ((connection: RawConnection) => void)[] = []
  readonly #head: string

  private constructor(address: { url: string; token: string }) {
    this.#head = ` HTTP/1.1\r\nhost: ${new URL(address.url).host}\r\nauthorization: Bearer ${address.token}\r\n`
  }

  static async open(address: { url: string; token: string; ca: string }, count: number): Promise<RawConnections> {
    const connections = new RawConnections(address)
    const { hostname, port } = new URL(address.url)
    const opening = Array.from({ length: count }, async () => {
      const socket = connect({ host: hostname, port: Number(port), ca: address.ca, ALPNProtocols: ['http/1.1'] })
      await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
      connections.#all.push(new RawConnection(socket))
    })
    await Promise.all(opening)
    connections.#idle.push(...connections.#all)
    return connections
  }

  async send(method: 'GET' | 'POST', path: string, body?: string): Promise<Answer> {
    const connection = this.#idle.pop() ?? (await new Promise<RawConnection>((resolve) => this.#waiting.push(resolve)))
    const content = body ? `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` : ''
    const answer = await connection.send(`${method} ${path}${this.#head}${content}\r\n${body ?? ''}`)
    const next = this.#waiting.shift()
    if (next) next(connection)
    else this.#idle.push(connection)
    return answer
  }

  close(): void {
    for (const { socket } of this.#all) socket.destroy()
  }
}
