import { randomUUID } from 'node:crypto'
import type { AgentSandboxClient, OwnedSandbox } from '@corral/agent-sandbox-sdk'
import { CorralError, type TasksClient } from '@corral/protocol'

/** What the tools work on. Without `tasks` there are tools for sandboxes alone, as on a cluster without our server. */
export interface McpBackend {
  readonly sandboxes: AgentSandboxClient
  readonly tasks?: TasksClient | undefined
  readonly version: string
}

/** The label upstream's own MCP server uses, so that the sandboxes of a session are found with kubectl. */
const sessionLabel = 'mcp.k8s-agent-sandbox/session-id'

/** The sandboxes of one client's session. Another session cannot name them, and they end with it. */
export class McpSession {
  readonly id: string
  readonly backend: McpBackend
  readonly #owned = new Map<string, OwnedSandbox>()
  #isClosed = false

  constructor(backend: McpBackend, id: string = randomUUID()) {
    this.backend = backend
    this.id = id
  }

  get labels(): Record<string, string> {
    return { [sessionLabel]: this.id }
  }

  get names(): string[] {
    return [...this.#owned.keys()]
  }

  namesIn(namespace: string): string[] {
    return [...this.#owned].filter(([, sandbox]) => sandbox.namespace === namespace).map(([name]) => name)
  }

  /** From now on the sandbox ends with the session; at once where that is over already. */
  async own(sandbox: OwnedSandbox): Promise<string> {
    const name = sandbox.claimName ?? sandbox.name
    this.#owned.set(name, sandbox)
    if (!this.#isClosed) return name
    await this.close()
    throw new CorralError('Aborted', 'the session ended while the sandbox was made')
  }

  find(name: string): OwnedSandbox {
    const found = this.#owned.get(name)
    if (found) return found
    const known = this.names
    throw new CorralError('NotFound', `this session has no sandbox "${name}"`, {
      hint: known.length === 0 ? 'Make one with create_sandbox.' : `It has: ${known.join(', ')}.`,
    })
  }

  async remove(name: string): Promise<void> {
    await this.find(name).delete()
    this.#owned.delete(name)
  }

  /** Deletes every sandbox of the session; one that cannot be reached is left to its shutdown time. */
  async close(): Promise<void> {
    this.#isClosed = true
    const owned = [...this.#owned.values()]
    this.#owned.clear()
    await Promise.allSettled(owned.map((sandbox) => sandbox.delete({ signal: AbortSignal.timeout(10_000) })))
  }
}
