import type { KubeClient } from '@corral/kube'
import { type ListenPortOptions, listenPort, type PortListener } from '@corral/kube'
import { daemonPort } from '@corral/protocol'
import { openReversePort, type ReversePort, type ReversePortOptions } from './reverse-port.js'
import { SandboxError, toSandboxError, translated } from './sandbox-error.js'
import type { SandboxLink } from './sandbox-link.js'

const pollMs = 100
const settleMs = 250

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
      return listenPort(await this.#kube(), { name: podName, namespace: this.#namespace }, port, options)
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

  /** An HTTP request to a port; the path and query of `target` count. Redirects are answers. */
  fetch(port: number, target: string, init: RequestInit = {}): Promise<Response> {
    checkPort(port)
    return translated(async () => {
      const { transport } = await this.#link.open(init.signal ?? undefined)
      const url = /^https?:\/\//.test(target) ? target : `http://sandbox${target.startsWith('/') ? '' : '/'}${target}`
      try {
        return await transport.fetchTo(port)(url, { ...init, redirect: 'manual' })
      } catch (error) {
        const failure = toSandboxError(error, init.signal ?? undefined)
        if (failure.code === 'ConnectionLost') await this.#link.diagnose(failure)
        throw failure
      }
    }, init.signal ?? undefined)
  }

  /** Resolves when something in the sandbox accepts connections on the port. */
  waitForPort(port: number, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<void> {
    checkPort(port)
    const { timeoutMs = 60_000, signal } = options
    return translated(async () => {
      const deadlineMs = performance.now() + timeoutMs
      for (;;) {
        if ((await this.#listens(port, signal)) && (await this.#accepts(port, signal))) return
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
   * By the kernel's own list, where our daemon can read it. Nobody listening is then certain, which a tunnel to a busy sandbox
   * tells too late to tell it from an open port.
   */
  async #listens(port: number, signal: AbortSignal | undefined): Promise<boolean> {
    const runtime = await this.#link.runtime(signal)
    if (runtime.kind !== 'corral') return true
    let text = ''
    try {
      const { events } = runtime.start({ argv: ['cat', '/proc/net/tcp', '/proc/net/tcp6'] })
      for await (const event of events) if (event.type === 'data') text += Buffer.from(event.data).toString('latin1')
    } catch (error) {
      const failure = toSandboxError(error, signal)
      if (failure.code !== 'CommandNotFound') throw failure
    }
    return !text.includes('local_address') || listenersIn(text).has(port)
  }

  /** A tunnel is granted before the port is asked: only a connection that stays open a moment, or speaks, was accepted. */
  async #accepts(port: number, signal: AbortSignal | undefined): Promise<boolean> {
    const { transport } = await this.#link.open(signal)
    if (!transport.dial) {
      const answer = await transport
        .fetchTo(port)('http://sandbox/', { method: 'HEAD' })
        .catch(() => undefined)
      return answer !== undefined && answer.status !== 502 && answer.status !== 504
    }
    try {
      const stream = await transport.dial(port, signal)
      const first = stream[Symbol.asyncIterator]().next()
      try {
        const quiet = new Promise<'open'>((resolve) => setTimeout(() => resolve('open'), settleMs))
        const outcome = await Promise.race([first, quiet])
        return outcome === 'open' || !outcome.done
      } finally {
        first.catch(() => {})
        stream.destroy()
      }
    } catch (error) {
      await this.#link.diagnose(toSandboxError(error))
      return false
    }
  }
}

/** Ports with a listener in `/proc/net/tcp` and its like: state 0A. */
export function listenersIn(table: string): Set<number> {
  const rows = table.matchAll(/^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A /gm)
  return new Set([...rows].map(([, port = '']) => Number.parseInt(port, 16)))
}

function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new SandboxError('Invalid', `${port} is not a port between 1 and 65535`)
  }
}
