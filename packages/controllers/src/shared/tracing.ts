import type { KubeObject } from '@corral/resources'
import { annotations } from './names.js'

export type SpanAttributes = Record<string, string>

/** One traced stretch of work. */
export interface Span {
  /** The propagation headers as JSON, for the trace annotation; empty while tracing is off. */
  readonly traceContext: string
  event(name: string, attributes: SpanAttributes): void
  child<T>(name: string, run: (span: Span) => Promise<T>): Promise<T>
}

/** Starts traces, joining the one an object carries in its annotation. */
export interface Tracer {
  span<T>(name: string, object: KubeObject, attributes: SpanAttributes, run: (span: Span) => Promise<T>): Promise<T>
}

const silentSpan: Span = { traceContext: '', event() {}, child: (_name, run) => run(silentSpan) }

/** Tracing switched off: costs a function call. */
export const silentTracer: Tracer = { span: (_name, _object, _attributes, run) => run(silentSpan) }

/** The parent a span joins, where the object carries a readable one. */
export function parentContext(object: KubeObject): Record<string, string> | undefined {
  const text = object.metadata?.annotations?.[annotations.traceContext]
  if (!text) return undefined
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null) return undefined
    return Object.fromEntries(Object.entries(parsed).filter((entry) => typeof entry[1] === 'string'))
  } catch {
    // A broken annotation starts a new trace; the object's owner wrote it and nothing depends on it.
    return undefined
  }
}
