import { CorralError, DaemonClient, daemonPort, type Fetch } from '@corral/protocol'
import type { SandboxTransport } from '../connection/sandbox-transport.js'
import { SandboxError } from '../sandbox-error.js'
import { ProcessLines } from './process-lines.js'
import type { RuntimeKind } from './sandbox-runtime.js'

const sandboxdPort = 8080
const probeTimeoutMs = 10_000

export interface Detected {
  readonly kind: Exclude<RuntimeKind, 'pod-exec'>
  /** Which life of our daemon answered. */
  readonly boot: string
  /** Where our daemon was found by one. */
  readonly lines?: ProcessLines | undefined
}

export interface DetectOptions {
  readonly signal?: AbortSignal | undefined
  authorize(fetch: Fetch): Fetch
  readonly authorization?: (() => Promise<string>) | undefined
  readonly traceHeaders?: (() => Record<string, string>) | undefined
}

/**
 * Asks what listens in the sandbox: our daemon or the legacy runtime on 8888, sandboxd on 8080; undefined for nothing, and
 * `refused` where both ports said so.
 */
export async function detectRuntime(
  transport: SandboxTransport,
  options: DetectOptions,
): Promise<Detected | 'refused' | undefined> {
  const { signal, authorize } = options
  const fetch = authorize(transport.fetchTo(daemonPort))
  const found = await ourDaemon(transport, fetch, options)
  if (found !== 'refused') {
    if (found) return found
    if ((await answers(fetch, '/', signal)) === true) return { kind: 'legacy', boot: '' }
  }
  const sandboxd = await answers(authorize(transport.fetchTo(sandboxdPort)), '/v1/health', signal)
  if (sandboxd === true) return { kind: 'sandboxd', boot: '' }
  return found === 'refused' && sandboxd === 'refused' ? 'refused' : undefined
}

/** Our daemon, by a line that its first command goes over, or by its health; `refused` where no process listens. */
async function ourDaemon(
  transport: SandboxTransport,
  fetch: Fetch,
  { signal, authorization, traceHeaders }: DetectOptions,
): Promise<Detected | 'refused' | undefined> {
  const { dial } = transport
  try {
    if (dial) {
      const lines = new ProcessLines({ dial: (given) => dial(daemonPort, given), authorization, traceHeaders })
      const found = await lines.probe(signal)
      if (found !== undefined) return { kind: 'corral', boot: found, lines }
    }
    const boot = await new DaemonClient({ fetch }).boot({ signal })
    return boot === undefined ? undefined : { kind: 'corral', boot }
  } catch (error) {
    if (signal?.aborted) throw new SandboxError('Aborted', 'the call was aborted')
    if (error instanceof CorralError && (error.code === 'Aborted' || error.code === 'Unauthorized')) throw error
    // Another program answered, or none listens.
    return isRefused(error) ? 'refused' : undefined
  }
}

/** As a port-forward says it, and as a socket does. */
function isRefused(error: unknown): boolean {
  return error instanceof Error && /ECONNREFUSED|connection refused|refused/i.test(error.message)
}

async function answers(fetch: Fetch, path: string, signal: AbortSignal | undefined): Promise<boolean | 'refused'> {
  const timeout = AbortSignal.timeout(probeTimeoutMs)
  try {
    const answer = await fetch(`http://sandbox${path}`, { signal: timeout })
    const body = (await answer.json()) as { status?: unknown }
    return answer.ok && body.status === 'ok'
  } catch (error) {
    if (signal?.aborted) throw new SandboxError('Aborted', 'the call was aborted')
    return isRefused(error) ? 'refused' : false // no JSON, or no answer: something else listens there
  }
}
