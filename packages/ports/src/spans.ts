/** A stretch of work that is over, as OpenTelemetry has it. Ids are in hex. */
export interface SpanRecord {
  readonly traceId: string
  readonly spanId: string
  /** Absent for the first span of a trace. */
  readonly parentId?: string
  readonly name: string
  /** Whether it answers a request from outside. */
  readonly kind?: 'server' | 'internal'
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, string | number>>
  /** Why it failed; absent where it did not. */
  readonly error?: string
}

/** Takes spans that are over. Never throws and never waits. */
export type SpanSink = (span: SpanRecord) => void
