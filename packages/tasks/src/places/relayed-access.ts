import { type AgentSandboxClient, type ReversePort, SandboxError } from '@corral/agent-sandbox-sdk'
import type { Logger } from '@corral/ports'
import { DaemonClient } from '@corral/protocol'
import type { SandboxAccess, SandboxSession } from '../sandbox/sandbox-session.js'
import { TaskError } from '../task-error.js'

export interface RelayOptions {
  client: Pick<AgentSandboxClient, 'connect'>
  /** Where the sandboxes are, whatever namespace their tasks have. */
  namespace: string
  /** The port on the sandbox's loopback that agents know the broker by. */
  port: number
  /** Where the broker listens. */
  target: () => { host: string; port: number }
  log: Logger
}

/** How long a platform waits for the first connection through. */
const openMs = 20_000
/** A step that follows another finds the way still open, and with it the calls an agent has under way. */
const lingerMs = 60_000

interface Relay {
  readonly reverse: ReversePort
  users: number
  lastError: string | undefined
  timer?: NodeJS.Timeout
  close(): Promise<void>
}

/**
 * Sandboxes of a cluster that cannot reach the platform: their daemons listen for the broker's port inside and pass every
 * connection out over one that the platform opened.
 */
export function relayedSandboxAccess(options: RelayOptions): SandboxAccess & { close(): Promise<void> } {
  const { client, namespace, port } = options
  const relays = new Map<string, Promise<Relay>>()

  async function openRelay(name: string): Promise<Relay> {
    const connection = await client.connect({ name, namespace })
    if (!connection.reverse) {
      await connection.close()
      throw new TaskError('BrokerUnreachable', 'the connection to the sandbox carries requests one way only')
    }
    const relay: Relay = {
      users: 0,
      lastError: undefined,
      reverse: connection.reverse(port, {
        target: options.target(),
        onError: (error) => {
          relay.lastError = error.message
          options.log.debug('a line for the broker broke', { sandbox: name, error })
        },
      }),
      async close() {
        clearTimeout(relay.timer)
        await relay.reverse.close()
        await connection.close()
      },
    }
    return relay
  }

  async function acquire(name: string): Promise<Relay> {
    const opening = relays.get(name) ?? openRelay(name)
    relays.set(name, opening)
    opening.catch(() => relays.delete(name))
    const relay = await opening
    clearTimeout(relay.timer)
    relay.users += 1
    return relay
  }

  function release(name: string, relay: Relay): void {
    relay.users -= 1
    if (relay.users > 0) return
    relay.timer = setTimeout(() => {
      relays.delete(name)
      void relay.close()
    }, lingerMs)
    relay.timer.unref()
  }

  return {
    async open({ name }, { signal }): Promise<SandboxSession> {
      const connection = await client.connect({ name, namespace }, { signal })
      const daemon = new DaemonClient({ fetch: connection.fetch })
      let mine: Promise<Relay> | undefined
      return {
        daemon,
        async passBroker({ isAwaited }) {
          mine ??= acquire(name)
          const relay = await mine.catch((error: unknown) => {
            mine = undefined
            throw unreachable(error, undefined)
          })
          if (!isAwaited) return
          try {
            await within(openMs, relay.reverse.ready)
            await daemon.checkReversePort(port, { signal, timeoutMs: openMs })
          } catch (error) {
            if (signal.aborted) throw error
            throw unreachable(error, relay.lastError)
          }
        },
        async close() {
          const relay = await mine?.catch(() => undefined)
          if (relay) release(name, relay)
          await connection.close()
        },
      }
    },
    async close() {
      for (const opening of relays.values()) await opening.then((relay) => relay.close()).catch(() => undefined)
      relays.clear()
    },
  }
}

function unreachable(error: unknown, lastError: string | undefined): TaskError {
  const message = error instanceof Error ? error.message : String(error)
  const detail = lastError !== undefined && lastError !== message ? `${message} (${lastError})` : message
  return new TaskError('BrokerUnreachable', `the sandbox cannot reach the model broker: ${detail}`, { cause: error })
}

async function within(limitMs: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new SandboxError('Timeout', `no line stood within ${limitMs / 1000} s`)), limitMs)
  })
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}
