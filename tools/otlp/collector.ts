import { createServer, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { bytesOf, textOf } from './protobuf-fields.js'

const exportPath = '/opentelemetry.proto.collector.trace.v1.TraceService/Export'

/** A span as it arrived. Ids are in hex; a root has no parent. */
export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly events: readonly { name: string; attributes: Readonly<Record<string, string>> }[]
  readonly service: string
  readonly tracer: string
}

/** A collector of OpenTelemetry traces that speaks OTLP over gRPC without TLS. */
export interface Collector {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  readonly spans: CollectedSpan[]
  /** Paths that were asked for and are not the export of traces. */
  readonly strays: string[]
  close(): Promise<void>
}

/** Listens on loopback, or where it is told, and keeps every span it is sent. */
export async function startCollector(host = '127.0.0.1'): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const strays: string[] = []
  const sessions = new Set<ServerHttp2Session>()
  const server = createServer()
  server.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
  })
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const chunks: Buffer[] = []
    stream.on('error', () => {}) // a client that goes away loses its answer, nothing else
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      const path = headers[':path'] ?? ''
      if (path === exportPath) spans.push(...decodeExport(unframed(Buffer.concat(chunks))))
      else strays.push(path)
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': path === exportPath ? '0' : '12' }))
      stream.end(Buffer.from([0, 0, 0, 0, 0])) // one frame, not compressed, with an empty message
    })
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo // a listening TCP server has one
  return {
    url: `http://${host}:${port}`,
    spans,
    strays,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const session of sessions) session.destroy()
      }),
  }
}

function unframed(body: Buffer): Uint8Array {
  if (body.readUInt8(0) !== 0) throw new Error('this collector reads no compressed messages')
  return body.subarray(5, 5 + body.readUInt32BE(1))
}

/** Field numbers are those of OTLP 1. */
function decodeExport(message: Uint8Array): CollectedSpan[] {
  return bytesOf(message, 1).flatMap((resourceSpans) => {
    const service =
      bytesOf(resourceSpans, 1).map((resource) => attributesOf(resource, 1)['service.name'] ?? '')[0] ?? ''
    return bytesOf(resourceSpans, 2).flatMap((scopeSpans) => {
      const tracer = bytesOf(scopeSpans, 1).map((scope) => textOf(scope, 1))[0] ?? ''
      return bytesOf(scopeSpans, 2).map((span) => ({
        traceId: hexOf(span, 1),
        spanId: hexOf(span, 2),
        parentId: hexOf(span, 4),
        name: textOf(span, 5),
        attributes: attributesOf(span, 9),
        events: bytesOf(span, 11).map((event) => ({ name: textOf(event, 2), attributes: attributesOf(event, 3) })),
        service,
        tracer,
      }))
    })
  })
}

const hexOf = (message: Uint8Array, number: number): string =>
  Buffer.from(bytesOf(message, number)[0] ?? []).toString('hex')

/** Attributes whose values are text; nobody here sends others. */
function attributesOf(message: Uint8Array, number: number): Record<string, string> {
  return Object.fromEntries(
    bytesOf(message, number).map((pair) => [textOf(pair, 1), textOf(bytesOf(pair, 2)[0] ?? new Uint8Array(), 1)]),
  )
}
