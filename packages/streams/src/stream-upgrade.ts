import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ByteStream, DuplexProcess, Logger } from '@corral/ports'

/** Which of the process's streams the client asked for in its query. */
export interface ProcessStreams {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  readonly tty: boolean
}

/** How long streams may rest and how much may wait in memory; each has a default. */
export interface StreamLimits {
  /** Time for the client to open its SPDY streams after the upgrade. */
  readonly openTimeoutMs?: number
  /** A WebSocket client that answers no ping for this long is gone. 0 turns pings off. */
  readonly pingIntervalMs?: number
  /** Bytes from the client that may wait for a slow process or port before reading from the socket pauses. */
  readonly highWaterBytes?: number
}

interface UpgradeBase {
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** What the HTTP parser had already read past the headers. */
  readonly head: Buffer
  /** Ends the stream from the server's side, as on shutdown. */
  readonly signal?: AbortSignal
  readonly limits?: StreamLimits
  readonly log?: Logger
}

/**
 * Exec or attach. `start` is called once, after the client has all its streams open; its signal aborts when the client
 * is gone. A rejection reaches the client as a Failure status with the error's `message`.
 */
export interface ProcessUpgrade extends UpgradeBase {
  readonly kind: 'exec' | 'attach'
  start(streams: ProcessStreams, signal: AbortSignal): Promise<DuplexProcess>
}

/** Port-forward. `dial` is called once per connection; a rejection reaches the client as text on its error stream. */
export interface PortUpgrade extends UpgradeBase {
  readonly kind: 'portforward'
  dial(port: number, signal: AbortSignal): Promise<ByteStream>
}

export type StreamUpgrade = ProcessUpgrade | PortUpgrade
