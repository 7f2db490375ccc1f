import { CorralError, DaemonClient, daemonPort, type Fetch } from '@corral/protocol'
import type { SandboxTransport } from '../connection/sandbox-transport.js'
import { SandboxError } from '../sandbox-error.js'
import type { RuntimeKind } from './sandbox-runtime.js'

const sandboxdPort = 8080
const probeTimeoutMs = 10_000

export interface Detected {
  readonly kind: Exclude<RuntimeKind, 'pod-exec'>
  /** Which life of our daemon answered. */
  readonly boot: string
}

/** Asks what listens in the sandbox: our daemon or the legacy runtime on 8888, sandboxd on 8080; undefined for nothing. */
export async function detectRuntime(
  transport: SandboxTransport,
  options: { signal?: AbortSignal | undefined; authorize: (fetch: Fetch) => Fetch },
): Promise<Detected | undefined> {
  const { signal } = options
  const fetch = options.authorize(transport.fetchTo(daemonPort))
  try {
    const boot = await new DaemonClient({ fetch }).boot({ signal })
    if (boot !== undefined) return { kind: 'corral', boot }
  } catch (error) {
    // Answered, but not by our daemon; or nobody is there.
    if (error instanceof CorralError && (error.code === 'Aborted' || error.code === 'Unauthorized')) throw error
  }
  if (await answers(fetch, '/', signal)) return { kind: 'legacy', boot: '' }
  if (await answers(options.authorize(transport.fetchTo(sandboxdPort)), '/v1/health', signal)) {
    return { kind: 'sandboxd', boot: '' }
  }
  return undefined
}

async function answers(fetch: Fetch, path: string, signal: AbortSignal | undefined): Promise<boolean> {
  const timeout = AbortSignal.timeout(probeTimeoutMs)
  try {
    const answer = await fetch(`http://sandbox${path}`, { signal: timeout })
    const body = (await answer.json()) as { status?: unknown }
    return answer.ok && body.status === 'ok'
  } catch {
    if (signal?.aborted) throw new SandboxError('Aborted', 'the call was aborted')
    return false // refused, or no JSON: something else, or nothing, listens there
  }
}
