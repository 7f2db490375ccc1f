import type { KubeClient, ObjectRef } from '@corral/kube'
import { DaemonClient, daemonPort, type Fetch } from '@corral/protocol'
import type { SandboxTransport } from './connection/sandbox-transport.js'
import { streamFetch } from './stream-fetch.js'

/** A line to the daemon of one sandbox. Closing it ends nothing inside. */
export interface SandboxConnection {
  /** HTTP to the daemon; the host of the URL does not matter. */
  readonly fetch: Fetch
  readonly daemon: DaemonClient
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
  return { fetch, daemon: new DaemonClient({ fetch }), close: async () => transport.close() }
}
