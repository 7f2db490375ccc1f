import { setTimeout as pause } from 'node:timers/promises'
import type { ByteStream } from '@corral/ports'
import { toSandboxError, unreachable, unreachedServer } from '../sandbox-error.js'

/** How long a call tries to reach the server without being told: a platform that starts anew takes less. */
export const defaultConnectMs = 10_000
const firstPauseMs = 50
const longestPauseMs = 1_000
/** So that a limit of 0 asks once. */
const shortestTryMs = 1_000

export interface ReachOptions {
  /** How long a server that cannot be reached is tried. */
  readonly connectMs: number
  /** Its address, where the failure does not tell. */
  readonly server?: string | undefined
}

/**
 * Opens a connection to a server, which may just be starting anew: tries until `connectMs` are over. Then it is
 * `ConnectionLost` with an `UnsentError` beneath, whatever was to go over the connection. `dial` is told how long its one
 * try may take.
 */
export async function reach(
  dial: (withinMs: number) => Promise<ByteStream>,
  { connectMs, server }: ReachOptions,
  signal?: AbortSignal,
): Promise<ByteStream> {
  const deadlineMs = performance.now() + connectMs
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      return await dial(Math.max(shortestTryMs, Math.ceil(deadlineMs - performance.now())))
    } catch (error) {
      if (signal?.aborted || !(error instanceof Error) || isOfPort(error, server)) throw error
      // Another try would meet the same certificate.
      if (toSandboxError(error).code === 'CertificateInvalid') throw unreachable(server, error)
      if (!isLost(error)) throw error
      if (performance.now() + pauseMs >= deadlineMs) throw unreachable(server, error)
      // What ends the pause is told by the next dial.
      await pause(pauseMs, undefined, signal ? { signal } : {}).catch(() => {})
    }
  }
}

/** No connection, or a server that has just started and cannot carry it yet. */
const isLost = (error: Error): boolean =>
  ['ConnectionLost', 'Timeout', 'ServiceUnavailable'].includes(toSandboxError(error).code)

/** The port of the sandbox has refused: a tunnel may tell so before it stands. */
function isOfPort(error: Error, server: string | undefined): boolean {
  return server === undefined && unreachedServer(error) === undefined && /refused/i.test(error.message)
}
