import type { AgentAdapter } from './agent-adapter.js'
import { claudeAgent } from './claude-agent.js'
import { commandAgent } from './command-agent.js'

/** Every agent, by name. */
export const agentAdapters: ReadonlyMap<string, AgentAdapter> = new Map(
  [commandAgent, claudeAgent].map((adapter) => [adapter.name, adapter]),
)

/** The adapter of this name, or undefined. */
export function findAgent(name: string): AgentAdapter | undefined {
  return agentAdapters.get(name)
}
