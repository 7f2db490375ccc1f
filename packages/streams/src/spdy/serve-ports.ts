import { setMaxListeners } from 'node:events'
import { forwardFailure, joinStreams } from '../port/forward-port.js'
import type { PortUpgrade } from '../stream-upgrade.js'
import type { SpdyStream } from './session.js'

interface Pair {
  error?: SpdyStream
  data?: SpdyStream
  timer: NodeJS.Timeout
}

/**
 * Takes the streams of a port-forward: two per connection, `error` and `data`, that share a request id. A pair that
 * stays incomplete is reset after `openTimeoutMs`. Returns the function that takes each stream, and how to stop.
 */
export function portPairs(
  upgrade: Pick<PortUpgrade, 'dial'>,
  signal: AbortSignal,
  openTimeoutMs: number,
): { take(stream: SpdyStream): void; settled(): Promise<unknown> } {
  const pairs = new Map<string, Pair>()
  const running = new Set<Promise<void>>()
  setMaxListeners(0, signal) // every connection of the session listens to it

  function pairFor(id: string): Pair {
    const known = pairs.get(id)
    if (known) return known
    const timer = setTimeout(() => {
      pairs.delete(id)
      pair.error?.destroy()
      pair.data?.destroy()
    }, openTimeoutMs)
    const pair: Pair = { timer }
    pairs.set(id, pair)
    return pair
  }

  return {
    take(stream) {
      const type = stream.headers.get('streamtype')
      const port = Number(stream.headers.get('port'))
      const isPort = Number.isInteger(port) && port > 0 && port < 65_536
      if ((type !== 'error' && type !== 'data') || !isPort) return stream.destroy()
      // Clients from before request ids open one connection per port at a time.
      const id = stream.headers.get('requestid') ?? `port ${port}`
      const pair = pairFor(id)
      pair[type] = stream
      if (!pair.error || !pair.data) return
      clearTimeout(pair.timer)
      pairs.delete(id)
      const done = serveConnection(pair.data, pair.error, port, upgrade, signal).finally(() => running.delete(done))
      running.add(done)
    },
    settled() {
      for (const { timer } of pairs.values()) clearTimeout(timer)
      pairs.clear()
      return Promise.all(running)
    },
  }
}

async function serveConnection(
  data: SpdyStream,
  error: SpdyStream,
  port: number,
  upgrade: Pick<PortUpgrade, 'dial'>,
  signal: AbortSignal,
): Promise<void> {
  try {
    const target = await upgrade.dial(port, signal)
    await joinStreams(data, target, signal, () => error.end())
  } catch (failure) {
    await error.write(Buffer.from(forwardFailure(port, failure))).catch(() => {}) // the client is gone
    data.destroy()
  }
  error.end()
}
