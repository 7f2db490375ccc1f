import type { AgentAdapter } from './agent-adapter.js'
import { acpAgent } from './agents/acp/acp-agent.js'
import { claudeAgent } from './agents/claude/claude-agent.js'
import { codexAgent } from './agents/codex/codex-agent.js'
import { commandAgent } from './agents/command/command-agent.js'
import { geminiAgent } from './agents/gemini/gemini-agent.js'
import { opencodeAgent } from './agents/opencode/opencode-agent.js'

/** Every agent, by name. */
export const agentAdapters: ReadonlyMap<string, AgentAdapter> = new Map(
  [claudeAgent, codexAgent, geminiAgent, opencodeAgent, acpAgent, commandAgent].map((adapter) => [
    adapter.name,
    adapter,
  ]),
)

/** The agent of tasks that name none, where the platform was not told another. */
export const defaultAgentName: string = claudeAgent.name

/** The agent that a bare command line is meant for. */
export const commandLineAgentName: string = commandAgent.name

/** The adapter of this name, or undefined. */
export function findAgent(name: string): AgentAdapter | undefined {
  return agentAdapters.get(name)
}
