import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { Agent, type RequestOptions, request } from 'node:https'
import { type KubeBody, parse } from './kube-body.js'

/** How to reach the server: straight, without the niceties of a client. */
export interface Target {
  readonly url: string
  readonly ca: string
  readonly token: string
  /** The administrator's client certificate. */
  readonly cert?: string
  readonly key?: string
}

export interface CallOptions {
  body?: object | string | Uint8Array
  /** JSON without it, when there is a body. */
  contentType?: string
  accept?: string
  headers?: Record<string, string>
  /** Another token, or none at all. */
  token?: string | null
  /** Present the client certificate instead of a token. */
  withCertificate?: boolean
  timeoutMs?: number
}

/** An answer read to its end. */
export class Answer {
  constructor(
    readonly status: number,
    readonly headers: IncomingHttpHeaders,
    readonly bytes: Buffer,
    private readonly asked: string,
  ) {}

  get text(): string {
    return this.bytes.toString('utf8')
  }

  get body(): KubeBody {
    return parse(this.text, this.asked)
  }

  /** The body when the status is one of these; otherwise an error that shows what came instead. */
  is(...statuses: number[]): KubeBody {
    if (!statuses.includes(this.status)) {
      throw new Error(`${this.asked}: ${this.status} instead of ${statuses.join(' or ')}: ${this.text.slice(0, 1200)}`)
    }
    return this.body
  }

  get warnings(): string {
    return this.headers.warning ?? ''
  }
}

export class HttpClient {
  private readonly agents: Agent[]
  private readonly certified: Agent

  constructor(readonly target: Target) {
    const { ca, cert, key } = target
    const plain = new Agent({ ca, keepAlive: true })
    this.certified = new Agent({ ca, keepAlive: false, ...(cert && key ? { cert, key } : {}) })
    this.agents = [plain, this.certified]
  }

  /** Repeats what a real server refuses because the watch cache of a kind is not filled yet, as its Retry-After asks. */
  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    for (const deadline = Date.now() + 240_000; ; ) {
      const answer = await this.callOnce(method, path, options)
      const isFilling = answer.status === 429 && answer.text.includes('storage is (re)initializing')
      if (!isFilling || Date.now() > deadline) return answer
      await new Promise((resolve) => setTimeout(resolve, 1000 * Number(answer.headers['retry-after'] ?? 1)))
    }
  }

  private async callOnce(method: string, path: string, options: CallOptions): Promise<Answer> {
    const response = await this.open(method, path, options)
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    return new Answer(response.statusCode ?? 0, response.headers, Buffer.concat(chunks), `${method} ${path}`)
  }

  /** Resolves with the response's headers; its body is still to come. */
  open(method: string, path: string, options: CallOptions = {}): Promise<IncomingMessage> {
    const { timeoutMs = 240_000 } = options
    return new Promise((resolve, reject) => {
      const outgoing = request(`${this.target.url}${path}`, this.requestOptions(method, options))
      const timer = setTimeout(
        () => outgoing.destroy(new Error(`${method} ${path}: no answer in ${timeoutMs} ms`)),
        timeoutMs,
      )
      outgoing.once('response', (response) => {
        clearTimeout(timer)
        resolve(response)
      })
      outgoing.once('error', (error) => {
        clearTimeout(timer)
        reject(error)
      })
      const bytes = toBytes(options.body)
      outgoing.end(bytes)
    })
  }

  private requestOptions(method: string, options: CallOptions): RequestOptions {
    const { token = this.target.token, withCertificate = false } = options
    const headers: Record<string, string> = { 'user-agent': 'conformance/1', ...options.headers }
    if (token !== null && !withCertificate) headers.authorization = `Bearer ${token}`
    if (options.accept) headers.accept = options.accept
    if (options.body !== undefined) headers['content-type'] = options.contentType ?? 'application/json'
    const bytes = toBytes(options.body)
    if (bytes) headers['content-length'] = String(bytes.length)
    return { method, headers, agent: withCertificate ? this.certified : this.agents[0] }
  }

  close(): void {
    for (const agent of this.agents) agent.destroy()
  }
}

/** A plain HTTP request to a local port, for what is forwarded. */
export function plainGet(port: number, path = '/', timeoutMs = 240_000): Promise<{ status: number; bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const call = httpRequest({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, bytes: Buffer.concat(chunks) }))
      response.on('error', reject)
    })
    call.setTimeout(timeoutMs, () => call.destroy(new Error('timed out')))
    call.once('error', reject)
    call.end()
  })
}

function toBytes(body: CallOptions['body']): Buffer | undefined {
  if (body === undefined) return undefined
  if (typeof body === 'string') return Buffer.from(body)
  return body instanceof Uint8Array ? Buffer.from(body) : Buffer.from(JSON.stringify(body))
}
