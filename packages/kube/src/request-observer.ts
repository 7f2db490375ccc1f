/** One exchange with an API server over a socket, as it ended; a stream ends here when it begins. */
export interface Exchange {
  readonly method: string
  readonly host: string
  /** Undefined when there was no answer. */
  readonly status: number | undefined
  readonly seconds: number
  readonly requestBytes: number
  /** Undefined for a stream. */
  readonly responseBytes: number | undefined
}

/** Told what a transport does, for figures. Must neither throw nor wait. */
export interface RequestObserver {
  exchanged(exchange: Exchange): void
  /** A read was sent again and answered so, or not at all. */
  retried(request: { method: string; host: string; status: number | undefined }): void
  /** How long a call waited for its turn under the client's own limit. */
  waited(request: { method: string; host: string; seconds: number }): void
}
