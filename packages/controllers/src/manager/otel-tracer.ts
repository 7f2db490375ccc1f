import type { KubeObject } from '@corral/resources'
import { parentContext, type Span, type SpanAttributes, type Tracer } from '../shared/tracing.js'

const serviceName = 'agent-sandbox-controller'

/**
 * A tracer that exports over OTLP/gRPC, set up by the standard OTEL_EXPORTER_OTLP_* variables. The SDK is loaded here and
 * nowhere else, so a manager without tracing never pays for it. `shutDown` sends what is left.
 */
export async function startOtelTracer(): Promise<{ tracer: Tracer; shutDown(): Promise<void> }> {
  const [api, sdk, exporter, resources] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/exporter-trace-otlp-grpc'),
    import('@opentelemetry/resources'),
  ])
  const provider = new sdk.NodeTracerProvider({
    resource: resources.resourceFromAttributes({ 'service.name': serviceName }),
    spanProcessors: [new sdk.BatchSpanProcessor(new exporter.OTLPTraceExporter())],
  })
  return { tracer: otelTracer(api, provider.getTracer(serviceName)), shutDown: () => provider.shutdown() }
}

type Api = typeof import('@opentelemetry/api')
type OtelTracer = import('@opentelemetry/api').Tracer
type OtelSpan = import('@opentelemetry/api').Span
type Context = import('@opentelemetry/api').Context

/** Our tracer over any OpenTelemetry tracer. */
export function otelTracer(api: Api, tracer: OtelTracer): Tracer {
  async function within<T>(
    name: string,
    parent: Context,
    attributes: SpanAttributes,
    run: (span: Span) => Promise<T>,
  ): Promise<T> {
    const otel = tracer.startSpan(name, { attributes }, parent)
    const context = api.trace.setSpan(parent, otel)
    try {
      return await run({
        traceContext: traceParent(otel),
        event: (event, details) => {
          otel.addEvent(event, details)
        },
        child: (child, inner) => within(child, context, {}, inner),
      })
    } catch (error) {
      otel.recordException(error instanceof Error ? error : String(error))
      otel.setStatus({ code: api.SpanStatusCode.ERROR })
      throw error
    } finally {
      otel.end()
    }
  }

  function joined(object: KubeObject): Context {
    const header = parentContext(object)?.traceparent ?? ''
    const match = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(header)
    if (!match?.[1] || !match[2]) return api.ROOT_CONTEXT
    const remote = {
      traceId: match[1],
      spanId: match[2],
      traceFlags: Number.parseInt(match[3] ?? '0', 16),
      isRemote: true,
    }
    return api.trace.setSpanContext(api.ROOT_CONTEXT, remote)
  }

  return { span: (name, object, attributes, run) => within(name, joined(object), attributes, run) }
}

function traceParent(span: OtelSpan): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return JSON.stringify({ traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}` })
}
