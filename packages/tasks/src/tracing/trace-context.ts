import { createHash, randomBytes } from 'node:crypto'
import type { KubeObject } from '@corral/resources'

/** Where objects carry the W3C headers of their trace, as JSON; the Agent Sandbox controllers read and write the same. */
export const traceContextAnnotation = 'opentelemetry.io/trace-context'

/** A span as others refer to it. */
export interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  /** Whether the trace is recorded. */
  readonly isSampled: boolean
}

/** Undefined for what is no `traceparent` of version 00. */
export function parseTraceparent(header: string | undefined): TraceParent | undefined {
  const [, traceId = '', spanId = '', flags = ''] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(header ?? '') ?? []
  // All zeros is how the format says "none".
  if (!/[1-9a-f]/.test(traceId) || !/[1-9a-f]/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function traceparentOf({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** The annotations that hand a trace on to an object; none without a trace. */
export function traceAnnotations(parent: TraceParent | undefined): Record<string, string> {
  return parent ? { [traceContextAnnotation]: JSON.stringify({ traceparent: traceparentOf(parent) }) } : {}
}

/** The span an object was made in. An annotation can be edited with kubectl: one that cannot be parsed counts as missing. */
export function traceOf({ metadata }: KubeObject): TraceParent | undefined {
  const text = metadata?.annotations?.[traceContextAnnotation]
  if (!text) return undefined
  try {
    const { traceparent } = (JSON.parse(text) ?? {}) as { traceparent?: unknown }
    return typeof traceparent === 'string' ? parseTraceparent(traceparent) : undefined
  } catch {
    return undefined
  }
}

/** A span below `parent`, or the first of a new trace. */
export function newSpan(parent: TraceParent | undefined): TraceParent {
  return {
    traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    isSampled: parent?.isSampled ?? true,
  }
}

/** The same id for the same words: who continues a task after a restart refers to spans that were not told yet. */
export function derivedId(words: string, bytes: 8 | 16): string {
  return createHash('sha256')
    .update(words)
    .digest('hex')
    .slice(0, bytes * 2)
}
