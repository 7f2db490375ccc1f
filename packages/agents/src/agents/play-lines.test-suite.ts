import type { AgentEvent } from '@corral/protocol'
import type { AgentExit, AgentParser, AgentVerdict } from '../agent-adapter.js'
import { agentAdapters } from '../agent-registry.js'

/** What an agent's parser makes of these lines and of how the agent ended. */
export function play(
  agent: string,
  lines: readonly object[],
  exit: AgentExit = { exitCode: 0 },
): { events: AgentEvent[]; verdict: AgentVerdict; parser: AgentParser } {
  const parser = agentAdapters.get(agent)!.createParser()
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  const events = [...parser.push(Buffer.from(text), 'stdout'), ...parser.end(exit)]
  return { events, verdict: parser.verdict, parser }
}
