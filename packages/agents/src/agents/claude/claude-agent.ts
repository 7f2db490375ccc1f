import * as z from 'zod'
import type { AgentAdapter, AgentParser, AgentTaskInput, LaunchSpec } from '../../agent-adapter.js'
import { argsOption, effortOption, modelOption, providerOption } from '../../agent-options.js'
import { agentsBinDirectory, commonLaunch } from '../../launch-script.js'
import { isRemote, type McpServer } from '../../mcp-server.js'
import { answerEntry } from './claude-channel.js'
import { claudeClientSource } from './claude-client-source.js'
import { ClaudeParser } from './claude-parser.js'

/**
 * Claude Code in print mode, spoken to by a program beside it (`claudeClientSource`). The model is reached through the broker
 * alone: the token it is given names one task and is worth nothing outside the sandbox.
 */
export const claudeAgent: AgentAdapter = {
  name: 'claude',
  title: 'Claude Code',
  commitsAs: { name: 'Claude', email: 'noreply@anthropic.com' },
  summary: 'Anthropic’s agent',
  options: z.strictObject({
    model: modelOption.optional(),
    effort: effortOption(['low', 'medium', 'high', 'xhigh', 'max']).optional(),
    args: argsOption.optional(),
    provider: providerOption.optional(),
  }),
  capabilities: {
    resume: true,
    plan: true,
    steer: true,
    ask: true,
    usage: true,
    mcp: true,
    acp: { no: 'speaks its own protocol; `claude-agent-acp` runs under the agent acp' },
  },
  install: { package: '@anthropic-ai/claude-code', version: '2.1.325', program: 'claude' },
  speaks: ['anthropic'],
  launch: claudeLaunch,
  createParser: (): AgentParser => new ClaudeParser(),
  sessions: { paths: ['claude/projects'] },
  answer: answerEntry,
}

/** Without Node in the sandbox it works all the same; it then reads nothing after its prompt, and cannot ask. */
const script = `PATH="$PATH:${agentsBinDirectory}"; export PATH
if command -v node > /dev/null || [ "$CORRAL_ASK" != never ]; then exec node "$CORRAL_CLAUDE_CLIENT" "$@"; fi
exec claude "$@" < "$CORRAL_PROMPT_FILE"`

function claudeLaunch(task: AgentTaskInput): LaunchSpec {
  const { env, promptFile } = commonLaunch(task)
  const { model, effort, args = [] } = task.options
  const clientFile = `${task.stateDir}/claude-client.mjs`
  // In plan mode an agent that can ask is offered a tool that ends the plan.
  const ask = task.mode === 'plan' ? 'never' : (task.ask ?? 'never')
  const options = ['-p', '--output-format', 'stream-json', '--verbose']
  // Plan mode ends with these permissions, so that one must not be given the other's.
  if (task.mode === 'plan') options.push('--permission-mode', 'plan')
  else options.push(...(ask === 'always' ? ['--permission-mode', 'default'] : ['--dangerously-skip-permissions']))
  if (model) options.push('--model', model)
  if (effort) options.push('--effort', effort)
  if (task.resume) options.push('--resume', task.resume.sessionId)
  if (task.instructions) options.push('--append-system-prompt', task.instructions)
  if (task.mcpServers?.length) options.push('--strict-mcp-config', '--mcp-config', `${task.stateDir}/claude-mcp.json`)
  return {
    argv: ['/bin/sh', '-c', script, 'claude', ...options, ...args],
    env: {
      ...env,
      CORRAL_CLAUDE_CLIENT: clientFile,
      CORRAL_ASK: ask,
      ...(task.inboxDir ? { CORRAL_INBOX: task.inboxDir } : {}),
      CLAUDE_CONFIG_DIR: `${task.stateDir}/claude`,
      ...(task.broker ? { ANTHROPIC_BASE_URL: task.broker.baseUrl, ANTHROPIC_AUTH_TOKEN: task.broker.token } : {}),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      // Says that the sandbox is the boundary; as root the CLI refuses to skip permissions without it.
      IS_SANDBOX: '1',
    },
    cwd: task.workDir,
    files: [
      promptFile,
      { path: clientFile, content: claudeClientSource, mode: '0600' },
      ...(task.mcpServers?.length
        ? [{ path: `${task.stateDir}/claude-mcp.json`, content: mcpConfig(task.mcpServers), mode: '0600' }]
        : []),
    ],
  }
}

function mcpConfig(servers: readonly McpServer[]): string {
  const entries = servers.map((server) =>
    isRemote(server)
      ? [server.name, { type: 'http', url: server.url, ...(server.headers ? { headers: server.headers } : {}) }]
      : [server.name, { command: server.command, args: server.args ?? [], env: server.env ?? {} }],
  )
  return JSON.stringify({ mcpServers: Object.fromEntries(entries) })
}
