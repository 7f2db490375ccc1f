import type { ByteStream, DuplexProcess } from './byte-stream.js'

export interface PodRef {
  namespace: string
  name: string
  uid?: string
}

export interface ExecStreamOptions {
  container: string
  command: readonly string[]
  stdin: boolean
  stdout: boolean
  stderr: boolean
  tty: boolean
  signal?: AbortSignal
}

export type AttachStreamOptions = Omit<ExecStreamOptions, 'command'>

export interface LogStreamOptions {
  container: string
  follow?: boolean
  previous?: boolean
  sinceSeconds?: number
  sinceTime?: string
  timestamps?: boolean
  tailLines?: number
  limitBytes?: number
  signal?: AbortSignal
}

/**
 * Who serves the streaming sub-resources of pods: the kubelet's role. The API server has already checked that pod and
 * container exist and run. A failure before the stream starts rejects with an `ApiError`-like `{ code, message }`.
 */
export interface PodStreams {
  exec(pod: PodRef, options: ExecStreamOptions): Promise<DuplexProcess>
  attach(pod: PodRef, options: AttachStreamOptions): Promise<DuplexProcess>
  /** At once, or once a node elsewhere has agreed. */
  logs(pod: PodRef, options: LogStreamOptions): AsyncIterable<Uint8Array> | Promise<AsyncIterable<Uint8Array>>
  portForward(pod: PodRef, port: number, options?: { signal?: AbortSignal }): Promise<ByteStream>
}
