import type { KubeClient, ObjectRef } from '@corral/kube'
import { DaemonClient, daemonPort, type Fetch } from '@corral/protocol'
import type { SandboxTransport } from './connection/sandbox-transport.js'
import { openReversePort, type ReversePort, type ReversePortOptions } from './reverse-port.js'
import { streamFetch } from './stream-fetch.js'

/** A connection to the daemon of one sandbox. Closing it ends nothing inside. */
export interface SandboxConnection {
  /** HTTP to the daemon; the host of the URL does not matter. */
  readonly fetch: Fetch
  readonly daemon: DaemonClient
  /** See `openReversePort`; absent where only HTTP passes. */
  readonly reverse?: (port: number, options: ReversePortOptions) => ReversePort
  close(): Promise<void>
}

/** Connects through the API server's port-forward, which works wherever kubectl does. Dials at the first request. */
export function connectPod(kube: KubeClient, pod: ObjectRef, port: number = daemonPort): SandboxConnection {
  const { fetch, close } = streamFetch((signal) => kube.portForward(pod, port, { signal }))
  return { fetch, daemon: new DaemonClient({ fetch }), close: async () => close() }
}

/** Connects the way a transport goes, and closes it with the line. */
export function connectThrough(transport: SandboxTransport, port: number = daemonPort): SandboxConnection {
  const fetch = transport.fetchTo(port)
  const { dial } = transport
  return {
    fetch,
    daemon: new DaemonClient({ fetch }),
    ...(dial ? { reverse: (inside, options) => openReversePort((signal) => dial(port, signal), inside, options) } : {}),
    close: async () => transport.close(),
  }
}
