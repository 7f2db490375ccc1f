import * as z from 'zod'
import type { AgentAdapter, AgentParser, AgentTaskInput, LaunchSpec } from '../../agent-adapter.js'
import { commandOption, modelOption, providerOption } from '../../agent-options.js'
import { agentsBinDirectory, commonLaunch } from '../../launch-script.js'
import { isRemote, type McpServer } from '../../mcp-server.js'
import { clientEnvironment } from '../../providers/client-environment.js'
import { answerEntry } from './acp-channel.js'
import { acpClientSource } from './acp-client-source.js'
import { AcpParser } from './acp-parser.js'

/** Any program that speaks the Agent Client Protocol on its standard input and output. */
export const acpAgent: AgentAdapter = {
  name: 'acp',
  title: 'an ACP agent',
  summary: 'any program that speaks the Agent Client Protocol',
  options: z.strictObject({
    command: commandOption,
    model: modelOption.optional(),
    provider: providerOption.optional(),
  }),
  capabilities: {
    resume: { no: 'where an agent keeps its sessions is its own affair' },
    plan: true,
    steer: true,
    ask: true,
    usage: true,
    mcp: true,
    acp: true,
  },
  launch: acpLaunch,
  createParser: (): AgentParser => new AcpParser(),
  answer: answerEntry,
}

const script = `PATH="$PATH:${agentsBinDirectory}"; export PATH; exec node "$CORRAL_ACP_CLIENT"`

function acpLaunch(task: AgentTaskInput): LaunchSpec {
  const { command, model } = task.options
  if (!command) throw new TypeError('the acp agent needs a command')
  const { env, promptFile } = commonLaunch(task)
  const clientFile = `${task.stateDir}/acp-client.mjs`
  const optionsFile = `${task.stateDir}/acp-options.json`
  const options = {
    command,
    mode: task.mode ?? 'work',
    ask: task.mode === 'plan' ? 'never' : (task.ask ?? 'never'),
    ...(task.inboxDir ? { inbox: task.inboxDir } : {}),
    mcpServers: (task.mcpServers ?? []).map(mcpEntry),
    ...(task.instructions ? { instructions: task.instructions } : {}),
    ...(task.resume ? { resume: task.resume.sessionId } : {}),
  }
  return {
    argv: ['/bin/sh', '-c', script],
    env: {
      ...env,
      CORRAL_ACP_CLIENT: clientFile,
      CORRAL_ACP_OPTIONS: optionsFile,
      ...(model ? { CORRAL_MODEL: model } : {}),
      ...(task.broker ? clientEnvironment(task.broker) : {}),
    },
    cwd: task.workDir,
    files: [
      promptFile,
      { path: clientFile, content: acpClientSource, mode: '0600' },
      { path: optionsFile, content: JSON.stringify(options), mode: '0600' },
    ],
  }
}

const pairs = (values: Readonly<Record<string, string>> = {}): { name: string; value: string }[] =>
  Object.entries(values).map(([name, value]) => ({ name, value }))

function mcpEntry(server: McpServer): object {
  if (isRemote(server)) return { type: 'http', name: server.name, url: server.url, headers: pairs(server.headers) }
  return { name: server.name, command: server.command, args: server.args ?? [], env: pairs(server.env) }
}
