import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A span as it arrived. A root has no parent. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  readonly name: string
  readonly service: string
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, string>>
  /** What went wrong, where something did. */
  readonly error: string | undefined
}

/** A collector of OpenTelemetry traces that takes OTLP over HTTP as JSON. */
export interface TraceCollector extends AsyncDisposable {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  readonly spans: ReceivedSpan[]
  /** Headers of every export. */
  readonly exports: Record<string, string | string[] | undefined>[]
  /** What it answers from now on; 200 at first. */
  status: number
}

interface Attribute {
  key: string
  value: { stringValue?: string; intValue?: string }
}

interface ExportRequest {
  resourceSpans: {
    resource: { attributes: Attribute[] }
    scopeSpans: {
      spans: {
        traceId: string
        spanId: string
        parentSpanId?: string
        name: string
        startTimeUnixNano: string
        endTimeUnixNano: string
        attributes: Attribute[]
        status?: { code?: number; message?: string }
      }[]
    }[]
  }[]
}

/** Listens on loopback, or where it is told, and keeps every span it takes. */
export async function startTraceCollector({ host = '127.0.0.1' }: { host?: string } = {}): Promise<TraceCollector> {
  const spans: ReceivedSpan[] = []
  const exports: TraceCollector['exports'] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const isExport = request.method === 'POST' && request.url === '/v1/traces'
      response.statusCode = isExport ? collector.status : 404
      if (isExport) exports.push(request.headers)
      if (response.statusCode === 200) spans.push(...received(JSON.parse(Buffer.concat(chunks).toString())))
      response.setHeader('content-type', 'application/json')
      response.end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo // a listening TCP server has one
  const collector: TraceCollector = {
    url: `http://${host}:${port}`,
    spans,
    exports,
    status: 200,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return collector
}

function received({ resourceSpans }: ExportRequest): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap((scope) => scope.spans)
      .map(({ traceId, spanId, parentSpanId, name, startTimeUnixNano, endTimeUnixNano, attributes, status }) => ({
        ...{ traceId, spanId, parentId: parentSpanId, name },
        service: record(resource.attributes)['service.name'] ?? '',
        startMs: Number(BigInt(startTimeUnixNano) / 1_000_000n),
        endMs: Number(BigInt(endTimeUnixNano) / 1_000_000n),
        attributes: record(attributes),
        error: status?.code === 2 ? (status.message ?? '') : undefined,
      })),
  )
}

function record(attributes: readonly Attribute[]): Record<string, string> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? '']))
}
