import { boundedText, CorralError, DaemonClient, daemonPort, type Fetch, isUnsent } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import type { SandboxTransport } from '../connection/sandbox-transport.js'
import { SandboxError } from '../sandbox-error.js'
import { ProcessLines } from './process-lines.js'
import type { RuntimeKind } from './sandbox-runtime.js'

export const sandboxdPort = 8080
const probeTimeoutMs = 10_000
const maxProbeBytes = 64 * 1024
/** A container without a readiness probe is Ready before the program in it listens. */
const startsWithinMs = 15_000
/** The same where the caller named no runtime: a pod without one is to be found out soon. */
const mayStartWithinMs = 5_000
const askAgainMs = 50

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

export interface RequireOptions extends DetectOptions {
  /** How long the runtime may take until it listens. */
  readonly startsWithinMs?: number | undefined
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
    if ((await answers(fetch, '/', signal)) === 'yes') return { kind: 'legacy', boot: '' }
  }
  const sandboxd = await answers(authorize(transport.fetchTo(sandboxdPort)), '/v1/health', signal)
  if (sandboxd === 'yes') return { kind: 'sandboxd', boot: '' }
  return found === 'refused' && sandboxd === 'refused' ? 'refused' : undefined
}

/** What listens in a sandbox that has just become Ready and refused connections a moment ago; undefined for nothing. */
export async function detectAfterStart(
  transport: SandboxTransport,
  options: DetectOptions & { readonly readyForMs: number },
): Promise<Detected | undefined> {
  const deadlineMs = performance.now() + mayStartWithinMs - Math.max(0, options.readyForMs)
  for (;;) {
    const found = await detectRuntime(transport, options)
    if (found !== 'refused') return found
    if (performance.now() >= deadlineMs) return undefined
    await new Promise((resolve) => setTimeout(resolve, askAgainMs))
  }
}

/**
 * Asks for the runtime that the caller named, and waits for it while nothing listens. Without the question another program's
 * page would be read as a file, and what is not gRPC would fail deep inside the client of it.
 */
export async function requireRuntime(
  kind: Detected['kind'],
  transport: SandboxTransport,
  options: RequireOptions,
): Promise<Detected> {
  const deadlineMs = performance.now() + (options.startsWithinMs ?? startsWithinMs)
  let answer = await askFor(kind, transport, options)
  while (answer === 'refused' && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, askAgainMs))
    if (options.signal?.aborted) throw new SandboxError('Aborted', 'the call was aborted')
    answer = await askFor(kind, transport, options)
  }
  if (typeof answer !== 'string') return answer
  const port = portOf(kind)
  if (answer === 'silent') throw new SandboxError('ConnectionLost', `port ${port} of the sandbox does not answer`)
  const what =
    answer === 'refused'
      ? `nothing listens on port ${port} of the sandbox`
      : `what answers on port ${port} of the sandbox is another program`
  throw new SandboxError('Unsupported', `${what}: runtime "${kind}" was asked for`, {
    hint: 'Leave `runtime` out: then the SDK asks what runs inside.',
  })
}

const portOf = (kind: Detected['kind']): number => (kind === 'sandboxd' ? sandboxdPort : daemonPort)

async function askFor(
  kind: Detected['kind'],
  transport: SandboxTransport,
  options: DetectOptions,
): Promise<Detected | Exclude<Answer, 'yes'>> {
  const fetch = options.authorize(transport.fetchTo(portOf(kind)))
  if (kind === 'corral') {
    const found = await ourDaemon(transport, fetch, options)
    if (found) return found
  }
  const answer = await answers(fetch, healthPaths[kind], options.signal)
  if (answer !== 'yes') return answer
  // A program that says it is well, and is not our daemon.
  return kind === 'corral' ? 'other' : { kind, boot: '' }
}

const healthPaths = { corral: '/healthz', legacy: '/', sandboxd: '/v1/health' } as const

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
    // The server on the way does not answer: that tells nothing of what runs inside.
    if (isUnsent(error)) throw error
    // Another program answered, or none listens.
    return isRefused(error) ? 'refused' : undefined
  }
}

/** As a port-forward says it, and as a socket does. */
function isRefused(error: unknown): boolean {
  return error instanceof Error && /ECONNREFUSED|connection refused|refused/i.test(error.message)
}

type Answer = 'yes' | 'other' | 'refused' | 'silent'

async function answers(fetch: Fetch, path: string, signal: AbortSignal | undefined): Promise<Answer> {
  const timeout = AbortSignal.timeout(probeTimeoutMs)
  let answer: Response
  let text: string
  try {
    answer = await fetch(`http://sandbox${path}`, { signal: timeout })
    text = await boundedText(answer, maxProbeBytes)
  } catch (error) {
    if (signal?.aborted) throw new SandboxError('Aborted', 'the call was aborted')
    if (isUnsent(error)) throw error
    if (isRefused(error)) return 'refused'
    // Not HTTP, or too much of it.
    const isNonsense = /^HPE_/.test(errorCode(error) ?? '') || errorCode(error) === 'ProtocolViolation'
    return isNonsense ? 'other' : 'silent'
  }
  try {
    const body = JSON.parse(text) as { status?: unknown } | null
    return answer.ok && body?.status === 'ok' ? 'yes' : 'other'
  } catch {
    return 'other'
  }
}
