/** Where load goes. */
export interface LoadAddress {
  url: string
  token: string
  /** PEM. */
  ca: string
  connections: number
}

/** What the load process can be asked to do. Objects are ConfigMaps of about 1 KB in `namespace`. */
export type LoadJob =
  | {
      kind: 'create'
      namespace: string
      prefix: string
      durationMs?: number
      count?: number
      keepAcknowledged?: boolean
    }
  | { kind: 'get'; namespace: string; names: readonly string[]; durationMs: number }
  /** Creates while watching. Without a rate every connection creates as fast as it is answered. */
  | { kind: 'watch'; namespace: string; prefix: string; durationMs: number; ratePerSecond?: number }
  | { kind: 'list'; namespace: string }

export interface LoadResult {
  count: number
  elapsedMs: number
  /** Per request; for `watch` from before the create was sent until its event was read. */
  latenciesMs: number[]
  /** Requests that were not answered with success; the first reason. */
  failed: number
  firstFailure?: string
  /** Name and resourceVersion of what the server said it has: created, or listed. */
  acknowledged?: [name: string, resourceVersion: string][]
}

export interface LoadMessage {
  address: LoadAddress
  job: LoadJob
}

export type LoadReply = { result: LoadResult } | { error: string }
