import { setTimeout as pause } from 'node:timers/promises'
import type { Logger, SpanRecord, SpanSink } from '@corral/ports'

/** Sends spans to a collector. */
export interface SpanExporter {
  readonly sink: SpanSink
  /** Sends what is left, as far as the collector answers within seconds. */
  close(): Promise<void>
}

interface Target {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly resource: Readonly<Record<string, string>>
}

/** Spans are few; a collector that is away for minutes costs the oldest of them, not memory. */
const maxKept = 4_096
const batchSize = 512
const delayMs = 1_000
const callMs = 10_000

/** Where the standard OTEL_* variables say spans go; undefined where they name no collector or switch it off. Pure. */
export function otlpTarget(env: NodeJS.ProcessEnv): Target | undefined {
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/+$/, '')
  const url = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || (base && `${base}/v1/traces`)
  if (!url || env.OTEL_SDK_DISABLED === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return undefined
  return {
    url,
    headers: pairs(env.OTEL_EXPORTER_OTLP_TRACES_HEADERS || env.OTEL_EXPORTER_OTLP_HEADERS),
    resource: {
      'service.name': env.OTEL_SERVICE_NAME || 'corral',
      ...pairs(env.OTEL_RESOURCE_ATTRIBUTES),
    },
  }
}

/** Exports in batches over OTLP/HTTP as JSON. One warning per outage: traces are no reason to fail anything. */
export function startOtlpExporter(
  target: Target,
  options: { log: Logger; fetch?: typeof fetch; closeMs?: number },
): SpanExporter {
  const { log, fetch: call = fetch, closeMs = 2_000 } = options
  const kept: SpanRecord[] = []
  const ending = new AbortController()
  let isDown = false
  let sending: Promise<void> | undefined

  const send = async (batch: readonly SpanRecord[]): Promise<void> => {
    const answer = await call(target.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...target.headers },
      body: JSON.stringify(otlpRequest(batch, target.resource)),
      signal: AbortSignal.timeout(callMs),
    })
    await answer.arrayBuffer()
    if (!answer.ok) throw new Error(`the collector answered ${answer.status}`)
  }
  const drain = async (): Promise<void> => {
    while (kept.length > 0) {
      const batch = kept.splice(0, batchSize)
      try {
        await send(batch)
        isDown = false
      } catch (error) {
        kept.unshift(...batch)
        if (!isDown) log.warn('spans cannot be sent', { url: target.url, error })
        isDown = true
        return
      }
    }
  }
  const sendLater = (): void => {
    sending ??= pause(delayMs, undefined, { ref: false, signal: ending.signal })
      .catch(() => undefined) // closing: what is left goes at once
      .then(drain)
      .finally(() => {
        sending = undefined
        if (kept.length > 0 && !ending.signal.aborted) sendLater()
      })
  }
  return {
    sink(span) {
      kept.push(span)
      kept.splice(0, kept.length - maxKept)
      sendLater()
    },
    async close() {
      ending.abort()
      await Promise.race([(sending ?? Promise.resolve()).then(drain), pause(closeMs, undefined, { ref: false })])
    },
  }
}

/** The body of an export as OTLP 1 writes it in JSON: ids in hex, times as decimal strings of nanoseconds. Pure. */
export function otlpRequest(spans: readonly SpanRecord[], resource: Readonly<Record<string, string>>): object {
  const nanos = (ms: number): string => `${BigInt(Math.round(ms))}000000`
  return {
    resourceSpans: [
      {
        resource: { attributes: attributes(resource) },
        scopeSpans: [
          {
            scope: { name: 'corral' },
            spans: spans.map(({ traceId, spanId, parentId, name, kind, startMs, endMs, error, ...span }) => ({
              ...{ traceId, spanId, ...(parentId ? { parentSpanId: parentId } : {}), name },
              kind: kind === 'server' ? 2 : 1,
              startTimeUnixNano: nanos(startMs),
              endTimeUnixNano: nanos(endMs),
              attributes: attributes(span.attributes),
              status: error === undefined ? {} : { code: 2, message: error },
            })),
          },
        ],
      },
    ],
  }
}

function attributes(of: Readonly<Record<string, string | number>>): object[] {
  return Object.entries(of).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(Math.round(value)) } : { stringValue: value },
  }))
}

/** `a=b,c=d`, percent-encoded, as the standard variables have it. What has no key is left out. */
function pairs(text = ''): Record<string, string> {
  return Object.fromEntries(
    text
      .split(',')
      .map((pair) => pair.split(/=(.*)/s).map((part) => part.trim()))
      .filter(([key]) => key)
      .map(([key = '', value = '']) => [key, decoded(value)]),
  )
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value // written as it is
  }
}
