import type { ApiConnection } from '@corral/ports'
import type { WatchEvent } from '@corral/resources'

/** One request to an API server, as a client states it. */
export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Percent-encoded, without the query. */
  readonly path: string
  readonly query?: URLSearchParams
  readonly contentType?: string
  /** Plain data; the transport serialises it where bytes are needed. */
  readonly body?: object
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number | undefined
}

export interface TransportResponse {
  readonly status: number
  /** Parsed JSON, text of any other content type, undefined when empty. */
  readonly body: unknown
  readonly retryAfterMs?: number
}

/**
 * How a client reaches a server: over a socket or by a call in the same process. `call` answers whatever the status;
 * the three others resolve once the server agreed and reject with a `KubeError` when it refused. A lost connection is
 * a `KubeError` with code `ConnectionLost`, a passed deadline one with code `Timeout`; after `signal` aborts they
 * reject with its reason.
 */
export interface KubeTransport {
  /** Objects cross without being serialised, so lists need no paging and streams no keep-alive. */
  readonly inProcess: boolean
  call(request: TransportRequest): Promise<TransportResponse>
  /** Resolves with the response's headers. Ends when the server ends it, throws when the connection is lost. */
  watch(request: TransportRequest): Promise<AsyncIterable<WatchEvent>>
  stream(request: TransportRequest): Promise<AsyncIterable<Uint8Array>>
  connect(request: TransportRequest): Promise<ApiConnection>
  /** Told how the request was answered, if at all, when it was sent again; for figures only. */
  retried?(request: TransportRequest, status: number | undefined): void
  /** Drops every connection; what is under way fails. */
  close(): Promise<void>
}
