import type { DaemonClient } from '@corral/protocol'

/** A connection to the daemon of one sandbox. Closing it ends nothing inside. */
export interface SandboxSession {
  readonly daemon: DaemonClient
  /**
   * Opens the sandbox's way to the broker, where its cluster has none; absent where it has. Awaited it resolves once a
   * connection gets through, and fails with `BrokerUnreachable`.
   */
  passBroker?(options: { isAwaited: boolean }): Promise<void>
  close(): Promise<void>
}

/** How the task controller reaches sandboxes: the SDK in production. */
export interface SandboxAccess {
  open(
    sandbox: { namespace: string; name: string; provider?: string | undefined },
    options: { signal: AbortSignal },
  ): Promise<SandboxSession>
}
