import type { DaemonClient } from '@corral/protocol'

/** A line to the daemon of one sandbox. Closing it ends nothing inside. */
export interface SandboxSession {
  readonly daemon: DaemonClient
  close(): Promise<void>
}

/** How the task controller reaches sandboxes: the SDK in production. */
export interface SandboxAccess {
  open(sandbox: { namespace: string; name: string }, options: { signal: AbortSignal }): Promise<SandboxSession>
}
