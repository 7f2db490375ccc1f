import type { RequestObserver } from '@corral/kube'
import { Counter, Histogram, type Registry } from 'prom-client'

const durationBuckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]
const sizeBuckets = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216]
/** What client-go calls an exchange that got no answer. */
const noAnswer = '<error>'

/** Figures about the manager's own requests, under client-go's names, labels and buckets. */
export function restClientMetrics(registry: Registry): RequestObserver {
  const registers = [registry]
  const histogram = (name: string, help: string, buckets: number[]): Histogram =>
    new Histogram({ name, help, buckets, labelNames: ['verb', 'host'], registers })
  const counter = (name: string, help: string, labelNames: string[]): Counter =>
    new Counter({ name, help, labelNames, registers })
  const durations = histogram('rest_client_request_duration_seconds', 'Time until the answer.', durationBuckets)
  const waits = histogram(
    'rest_client_rate_limiter_duration_seconds',
    "Time a request waited under the client's own limit.",
    durationBuckets,
  )
  const sent = histogram('rest_client_request_size_bytes', 'Size of request bodies.', sizeBuckets)
  const received = histogram('rest_client_response_size_bytes', 'Size of response bodies.', sizeBuckets)
  const requests = counter('rest_client_requests_total', 'Requests by answer.', ['code', 'method', 'host'])
  const retries = counter('rest_client_request_retries_total', 'Requests sent again.', ['code', 'verb', 'host'])
  return {
    exchanged({ method, host, status, seconds, requestBytes, responseBytes }) {
      durations.observe({ verb: method, host }, seconds)
      requests.inc({ code: String(status ?? noAnswer), method, host })
      sent.observe({ verb: method, host }, requestBytes)
      if (responseBytes !== undefined) received.observe({ verb: method, host }, responseBytes)
    },
    retried: ({ method, host, status }) => retries.inc({ code: String(status ?? noAnswer), verb: method, host }),
    waited: ({ method, host, seconds }) => waits.observe({ verb: method, host }, seconds),
  }
}
