import type { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import { DaemonClient } from '@corral/protocol'
import type { SandboxAccess } from './sandbox-session.js'

/** Sandboxes through the SDK: its connection to the daemon of a named sandbox. */
export function sdkSandboxAccess(client: Pick<AgentSandboxClient, 'connect'>): SandboxAccess {
  return {
    async open({ namespace, name }: { namespace: string; name: string }, { signal }) {
      const connection = await client.connect({ name, namespace }, { signal })
      return { daemon: new DaemonClient({ fetch: connection.fetch }), close: () => connection.close() }
    },
  }
}
