import type * as Otel from '@opentelemetry/api'

type Api = typeof Otel
type Attributes = Record<string, string | number | boolean>

const name = '@corral/agent-sandbox-sdk'

/** Spans and measurements through OpenTelemetry's API where the program has it; nothing where it has not. */
export class Telemetry {
  #api: Api | undefined
  #durations = new Map<string, Otel.Histogram>()

  /** Looks for the API, an optional peer. Calls made before it is found are not traced. */
  async load(): Promise<void> {
    try {
      this.#api = await import('@opentelemetry/api')
    } catch {
      // Not installed: no spans are recorded.
    }
  }

  /** Runs a call inside a span; a failure marks the span and goes on to the caller. */
  async span<T>(spanName: string, attributes: Attributes, call: () => Promise<T>): Promise<T> {
    const api = this.#api
    if (!api) return call()
    const startedAtMs = performance.now()
    return api.trace.getTracer(name).startActiveSpan(spanName, { attributes }, async (span) => {
      let outcome = 'ok'
      try {
        return await call()
      } catch (error) {
        outcome = error instanceof Error && 'code' in error ? String(error.code) : 'error'
        span.recordException(error instanceof Error ? error : String(error))
        span.setStatus({ code: api.SpanStatusCode.ERROR, message: outcome })
        throw error
      } finally {
        span.end()
        this.#histogram(spanName).record(performance.now() - startedAtMs, { outcome })
      }
    })
  }

  /** W3C headers of the span that is active now. */
  headers(): Record<string, string> {
    const carrier: Record<string, string> = {}
    this.#api?.propagation.inject(this.#api.context.active(), carrier)
    if (carrier.traceparent || !this.#api) return carrier
    // Without a propagator set up, the active span still has an identity worth passing on.
    const context = this.#api.trace.getActiveSpan()?.spanContext()
    if (!context || !this.#api.isSpanContextValid(context)) return carrier
    const flags = context.traceFlags.toString(16).padStart(2, '0')
    return { ...carrier, traceparent: `00-${context.traceId}-${context.spanId}-${flags}` }
  }

  #histogram(spanName: string): Otel.Histogram {
    const known = this.#durations.get(spanName)
    if (known) return known
    const made = this.#api!.metrics.getMeter(name).createHistogram(`${spanName}.duration`, { unit: 'ms' })
    this.#durations.set(spanName, made)
    return made
  }
}

/** The program of a command line, without variables and directories: what a span may show. */
export function executableOf(argv: readonly string[]): string {
  const word = argv.find((part) => !/^[A-Za-z_]\w*=/.test(part)) ?? ''
  return word.slice(word.lastIndexOf('/') + 1)
}
