import * as z from 'zod'
import type { AgentAdapter, AgentParser, AgentTaskInput, LaunchFile, LaunchSpec } from '../../agent-adapter.js'
import { argsOption, effortOption, modelOption, providerOption } from '../../agent-options.js'
import { commonLaunch, promptScript } from '../../launch-script.js'
import { isRemote, type McpServer } from '../../mcp-server.js'
import { CodexParser } from './codex-parser.js'

/** Codex without a terminal (`codex exec`). The sandbox is the boundary, so its own one is off. */
export const codexAgent: AgentAdapter = {
  name: 'codex',
  title: 'Codex',
  commitsAs: { name: 'Codex', email: 'codex@localhost' },
  summary: 'OpenAI’s agent',
  options: z.strictObject({
    model: modelOption.optional(),
    effort: effortOption(['minimal', 'low', 'medium', 'high', 'xhigh']).optional(),
    args: argsOption.optional(),
    provider: providerOption.optional(),
  }),
  capabilities: {
    resume: true,
    plan: true,
    steer: { no: '`codex exec` reads nothing after its prompt' },
    ask: { no: '`codex exec` asks nobody; what its sandbox would refuse is allowed' },
    usage: true,
    mcp: true,
    acp: { no: 'speaks its own protocol; `codex-acp` runs under the agent acp' },
  },
  install: { package: '@openai/codex', version: '0.166.0', program: 'codex' },
  speaks: ['openai'],
  launch: codexLaunch,
  createParser: (): AgentParser => new CodexParser(),
  sessions: { paths: ['codex/sessions'] },
}

function codexLaunch(task: AgentTaskInput): LaunchSpec {
  const { env, promptFile } = commonLaunch(task)
  const home = `${task.stateDir}/codex`
  const { model, args = [] } = task.options
  const isPlan = task.mode === 'plan'
  const options = ['exec']
  if (isPlan && !task.resume) options.push('--sandbox', 'read-only')
  if (task.resume) options.push('resume')
  options.push('--json', '--skip-git-repo-check')
  if (!isPlan) options.push('--dangerously-bypass-approvals-and-sandbox')
  if (isPlan && task.resume) options.push('-c', 'sandbox_mode="read-only"')
  if (model) options.push('-m', model)
  options.push(...args)
  if (task.resume) options.push(task.resume.sessionId)
  // The prompt comes from standard input.
  options.push('-')
  const files: LaunchFile[] = [
    promptFile,
    { path: `${home}/config.toml`, content: configToml(task), mode: '0600' },
    // Read for every repository, before the repository's own.
    ...(task.instructions ? [{ path: `${home}/AGENTS.md`, content: task.instructions, mode: '0600' }] : []),
  ]
  return {
    argv: ['/bin/sh', '-c', promptScript('codex'), 'codex', ...options],
    env: { ...env, CODEX_HOME: home, ...(task.broker ? { CORRAL_MODEL_TOKEN: task.broker.token } : {}) },
    cwd: task.workDir,
    files,
  }
}

/** A provider of our own: with the built-in one Codex would try a WebSocket first. */
function configToml({ broker, options, mcpServers = [] }: AgentTaskInput): string {
  const top = [
    'check_for_update_on_startup = false',
    'project_doc_fallback_filenames = ["CLAUDE.md"]',
    ...(options.effort ? [`model_reasoning_effort = ${text(options.effort)}`] : []),
    ...(broker ? ['model_provider = "corral"'] : []),
  ]
  const provider = broker
    ? [
        '',
        '[model_providers.corral]',
        'name = "Corral"',
        `base_url = ${text(`${broker.baseUrl}/v1`)}`,
        'env_key = "CORRAL_MODEL_TOKEN"',
        'wire_api = "responses"',
      ]
    : []
  return [...top, '', '[analytics]', 'enabled = false', ...provider, ...mcpServers.flatMap(mcpTable), ''].join('\n')
}

function mcpTable(server: McpServer): string[] {
  const lines = ['', `[mcp_servers.${text(server.name)}]`]
  if (isRemote(server)) {
    lines.push(`url = ${text(server.url)}`)
    if (server.headers) lines.push(`http_headers = ${inlineTable(server.headers)}`)
    return lines
  }
  lines.push(`command = ${text(server.command)}`, `args = [${(server.args ?? []).map(text).join(', ')}]`)
  if (server.env) lines.push(`env = ${inlineTable(server.env)}`)
  return lines
}

const inlineTable = (values: Readonly<Record<string, string>>): string =>
  `{ ${Object.entries(values)
    .map(([name, value]) => `${text(name)} = ${text(value)}`)
    .join(', ')} }`

/** A basic string of TOML: JSON's escapes are TOML's too, but for DEL, which TOML wants escaped. */
const text = (value: string): string => JSON.stringify(value).replaceAll('\u007f', '\\u007f')
