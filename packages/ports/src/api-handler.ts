import type { ByteStream, DuplexProcess } from './byte-stream.js'

/**
 * The seam between an API server and its clients: a plain record in, a plain record out. Over a socket it becomes HTTP;
 * in one process client and server are plugged together on it and objects cross without being serialised.
 */
export interface ApiRequest {
  readonly method: string
  /** Path as sent, percent-encoding untouched, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Bytes from a socket, or an object from a caller in the same process. The server never changes it. */
  readonly body?: Uint8Array | object
  /** Who asks. A transport in front of the handler sets it; without it the request is anonymous. */
  readonly user?: ApiUser
  /** Aborted when the caller went away. */
  readonly signal?: AbortSignal
}

export interface ApiUser {
  readonly name: string
  readonly groups: readonly string[]
}

export interface ApiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: ApiBody
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'

/** One watch event, serialised at most once however many sockets it goes to. */
export interface WatchFrame {
  readonly event: { readonly type: WatchEventType; readonly object: object }
  /** The event as one line of JSON, newline included. */
  line(): string
}

/** The frames of a watch. */
export interface WatchFrames extends AsyncIterable<WatchFrame> {
  /** The next frame if it is there already: who writes to a socket takes what one turn brought at once. */
  takeReady?(): WatchFrame | undefined
}

export type ApiBody =
  | { readonly type: 'empty' }
  /** `value` is frozen and shared: callers copy before they change it. */
  | { readonly type: 'object'; readonly value: object; json(): string }
  | { readonly type: 'bytes'; readonly bytes: Uint8Array }
  | { readonly type: 'stream'; readonly chunks: AsyncIterable<Uint8Array> }
  /** Ends by itself at the deadline or when the watcher fell behind. Breaking out of the iteration unregisters it. */
  | { readonly type: 'watch'; readonly frames: WatchFrames }

/** What an upgrade (exec, attach, port-forward) yields to a caller in the same process. */
export type ApiConnection =
  | { readonly type: 'process'; readonly process: DuplexProcess }
  | { readonly type: 'port'; readonly stream: ByteStream }

/** An API server as its clients see it. */
export interface ApiHandler {
  handle(request: ApiRequest): Promise<ApiResponse>
  /** Exec, attach or one port: the connection, or the response that refuses it. */
  connect(request: ApiRequest): Promise<ApiConnection | ApiResponse>
}
