import type { KubeClient } from '@corral/kube'
import { type ListenPortOptions, listenPort, type PortListener } from '@corral/kube'
import type { ByteStream } from '@corral/ports'
import { daemonPort, isUnsent } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import { openReversePort, type ReversePort, type ReversePortOptions } from './reverse-port.js'
import { SandboxError, toSandboxError, translated } from './sandbox-error.js'
import type { OpenLink, SandboxLink } from './sandbox-link.js'
import { timeLimit } from './time-limit.js'
import { withTypedBody } from './typed-body.js'

const pollMs = 100
const settleMs = 250
/** A port that nothing listens on. */
const closedPort = 1
const controlTimeoutMs = 10_000

/** Ports inside a sandbox. */
export class SandboxPorts {
  readonly #link: SandboxLink
  readonly #kube: () => Promise<KubeClient>
  readonly #namespace: string

  constructor(link: SandboxLink, kube: () => Promise<KubeClient>, namespace: string) {
    this.#link = link
    this.#kube = kube
    this.#namespace = namespace
  }

  /** A local port that leads to one of the sandbox; `ended` tells when it cannot any more. */
  forward(port: number, options: ListenPortOptions = {}): Promise<PortListener> {
    checkPort(port)
    return translated(async () => {
      const { podName } = await this.#link.open(options.signal)
      try {
        return await listenPort(await this.#kube(), { name: podName, namespace: this.#namespace }, port, options)
      } catch (error) {
        if (errorCode(error) !== 'PortUnavailable') throw error
        const message = error instanceof Error ? error.message : String(error)
        throw new SandboxError('Conflict', message, {
          cause: error,
          hint: 'Another program may listen there: name another local port, or none to get a free one.',
        })
      }
    }, options.signal)
  }

  /**
   * A port on the sandbox's loopback that leads to an address out here, such as a server on this machine. Resolves when a
   * connection inside would get through. `Conflict` where a program inside has the port.
   */
  reverse(
    port: number,
    target: ReversePortOptions['target'],
    options: { signal?: AbortSignal } = {},
  ): Promise<ReversePort> {
    checkPort(port)
    const { signal } = options
    return translated(async () => {
      const runtime = await this.#link.corral('reverse ports', signal)
      const { transport } = await this.#link.open(signal)
      const { dial } = transport
      if (!dial) throw new SandboxError('Unsupported', `reverse ports do not pass through "${transport.kind}"`)
      const line = (closing: AbortSignal) => dial(daemonPort, closing)
      const reverse = openReversePort(line, port, { target, authorization: this.#link.authorization })
      try {
        await reverse.ready
        await runtime.checkReversePort(port, { signal })
        return reverse
      } catch (error) {
        await reverse.close()
        throw error
      }
    }, signal)
  }

  /** An HTTP request to a port; the path and query of `target` count, of a `Request` all of it. Redirects are answers. */
  fetch(port: number, target: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    checkPort(port)
    const request = target instanceof Request ? { ...partsOf(target), ...init } : init
    const signal = request.signal ?? undefined
    return translated(async () => {
      const link = await this.#link.open(signal)
      const text = target instanceof Request ? target.url : String(target)
      const url = /^https?:\/\//.test(text) ? text : `http://sandbox${text.startsWith('/') ? '' : '/'}${text}`
      try {
        const answer = await link.transport.fetchTo(port)(url, { ...request, redirect: 'manual' })
        return withTypedBody(answer, (error) =>
          this.#explained(signal?.aborted ? error : brokenOff(port, error), link, signal),
        )
      } catch (error) {
        const failure = await this.#explained(error, link, signal)
        if (failure.code !== 'ConnectionLost' || isUnsent(error) || !/refused/i.test(failure.message)) throw failure
        throw new SandboxError('ConnectionLost', `nothing listens on port ${port} of the sandbox`, {
          cause: error,
          hint: 'Wait for it with ports.waitForPort.',
        })
      }
    }, signal)
  }

  /** A broken line may mean that the sandbox is gone: then that is the error. */
  async #explained(error: unknown, link: OpenLink, signal: AbortSignal | undefined): Promise<SandboxError> {
    const failure = toSandboxError(error, signal)
    if (failure.code !== 'ConnectionLost' || isUnsent(error)) return failure
    return this.#link.diagnose(failure, link).then(() => failure, toSandboxError)
  }

  /** Resolves when something in the sandbox accepts connections on the port. */
  waitForPort(port: number, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<void> {
    checkPort(port)
    const { timeoutMs = 60_000, signal } = options
    return translated(async () => {
      timeLimit(timeoutMs)
      const deadlineMs = performance.now() + timeoutMs
      for (;;) {
        if (await this.#accepts(port, signal)) return
        if (signal?.aborted) throw new SandboxError('Aborted', 'the call was aborted')
        if (performance.now() > deadlineMs) {
          throw new SandboxError(
            'Timeout',
            `nothing listens on port ${port} of the sandbox after ${timeoutMs / 1000} s`,
          )
        }
        await new Promise((resolve) => setTimeout(resolve, pollMs))
      }
    }, signal)
  }

  /**
   * A tunnel is granted before the port is asked, and how long a refusal takes depends on how busy the way is. So a port
   * counts as open when its connection speaks, or outlives one to a closed port that was dialled after it.
   */
  async #accepts(port: number, signal: AbortSignal | undefined): Promise<boolean> {
    const link = await this.#link.open(signal)
    const { transport } = link
    const { dial } = transport
    if (!dial) {
      const answer = await transport
        .fetchTo(port)('http://sandbox/', { method: 'HEAD' })
        .catch(() => undefined)
      return answer !== undefined && answer.status !== 502 && answer.status !== 504
    }
    try {
      const stream = await dial(port, signal)
      const first = stream[Symbol.asyncIterator]().next()
      try {
        const outlived = refusalOf(() => dial(closedPort, signal)).then(() => after(settleMs))
        const outcome = await Promise.race([first, outlived])
        return outcome === undefined || !outcome.done
      } finally {
        first.catch(() => {})
        stream.destroy()
      }
    } catch (error) {
      await this.#link.diagnose(toSandboxError(error), link)
      return false
    }
  }
}

/** Resolves when a connection ends, at the latest after a while: something may listen there after all. */
async function refusalOf(dial: () => Promise<ByteStream>): Promise<void> {
  const stream = await dial().catch(() => undefined)
  if (!stream) return
  const timer = setTimeout(() => stream.destroy(), controlTimeoutMs)
  await stream[Symbol.asyncIterator]()
    .next()
    .catch(() => undefined)
  clearTimeout(timer)
  stream.destroy()
}

function after(delayMs: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, delayMs, undefined))
}

/** Node says of an answer that ends early no more than "aborted". */
function brokenOff(port: number, cause: unknown): SandboxError {
  const { code, message } = toSandboxError(cause)
  return new SandboxError(code, `the answer of port ${port} broke off: ${message}`, { cause })
}

function partsOf({ method, headers, body, signal }: Request): RequestInit {
  return { method, headers, signal, ...(body ? { body } : {}) }
}

function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new SandboxError('Invalid', `${port} is not a port between 1 and 65535`)
  }
}
