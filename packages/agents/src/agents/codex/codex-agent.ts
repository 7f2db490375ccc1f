import type { AskPolicy } from '@corral/protocol'
import * as z from 'zod'
import type { AgentAdapter, AgentParser, AgentTaskInput, LaunchFile, LaunchSpec } from '../../agent-adapter.js'
import { argsOption, effortOption, modelOption, providerOption } from '../../agent-options.js'
import { agentsBinDirectory, commonLaunch } from '../../launch-script.js'
import { isRemote, type McpServer } from '../../mcp-server.js'
import { answerEntry } from './codex-channel.js'
import { codexClientSource } from './codex-client-source.js'
import { CodexParser } from './codex-parser.js'

/**
 * Codex, spoken to by a program beside it (`codexClientSource`). The sandbox is the boundary, so its own one is off but where
 * it plans.
 */
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
    steer: true,
    ask: true,
    usage: true,
    mcp: true,
    acp: { no: 'speaks its own protocol; `codex-acp` runs under the agent acp' },
  },
  install: { package: '@openai/codex', version: '0.166.0', program: 'codex' },
  speaks: ['openai'],
  launch: codexLaunch,
  createParser: (): AgentParser => new CodexParser(),
  sessions: { paths: ['codex/sessions'] },
  answer: answerEntry,
}

/**
 * Without Node in the sandbox, and with arguments that `codex exec` alone knows, Codex works all the same; it then reads
 * nothing after its prompt, and cannot ask.
 */
const script = `PATH="$PATH:${agentsBinDirectory}"; export PATH
if [ -n "$CORRAL_CODEX_CLIENT" ] && { command -v node > /dev/null || [ "$CORRAL_ASK" != never ]; }; then
  exec node "$CORRAL_CODEX_CLIENT"
fi
exec codex "$@" < "$CORRAL_PROMPT_FILE"`

/** What `codex app-server` takes too: values of its configuration. */
function isForServer(args: readonly string[]): boolean {
  return args.every((arg, index) => /^(-c|--config|--enable|--disable)(=.*)?$/.test(index % 2 === 0 ? arg : '-c'))
}

function codexLaunch(task: AgentTaskInput): LaunchSpec {
  const { env, promptFile } = commonLaunch(task)
  const home = `${task.stateDir}/codex`
  const { model, args = [] } = task.options
  const clientFile = `${task.stateDir}/codex-client.mjs`
  const optionsFile = `${task.stateDir}/codex-options.json`
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
    { path: clientFile, content: codexClientSource, mode: '0600' },
    { path: optionsFile, content: JSON.stringify(clientOptions(task)), mode: '0600' },
    // Read for every repository, before the repository's own.
    ...(task.instructions ? [{ path: `${home}/AGENTS.md`, content: task.instructions, mode: '0600' }] : []),
  ]
  return {
    argv: ['/bin/sh', '-c', script, 'codex', ...options],
    env: {
      ...env,
      CODEX_HOME: home,
      CORRAL_ASK: askOf(task),
      CORRAL_CODEX_OPTIONS: optionsFile,
      ...(isForServer(args) || askOf(task) !== 'never' ? { CORRAL_CODEX_CLIENT: clientFile } : {}),
      ...(task.broker ? { CORRAL_MODEL_TOKEN: task.broker.token } : {}),
    },
    cwd: task.workDir,
    files,
  }
}

const askOf = ({ mode, ask }: AgentTaskInput): AskPolicy => (mode === 'plan' ? 'never' : (ask ?? 'never'))

function clientOptions(task: AgentTaskInput): object {
  const ask = askOf(task)
  const { model, args = [] } = task.options
  return {
    ask,
    // Codex has its tool for questions in plan mode alone unless told otherwise.
    args: [...args, ...(ask === 'never' ? [] : ['--enable', 'default_mode_request_user_input'])],
    approvalPolicy: ask === 'always' ? 'untrusted' : 'never',
    sandbox: task.mode === 'plan' ? 'read-only' : 'danger-full-access',
    ...(model ? { model } : {}),
    ...(task.inboxDir ? { inbox: task.inboxDir } : {}),
    ...(task.resume ? { resume: task.resume.sessionId } : {}),
  }
}

/** A provider of our own: with the built-in one Codex would try a WebSocket first. */
function configToml({ broker, options, mcpServers = [] }: AgentTaskInput): string {
  const top = [
    'check_for_update_on_startup = false',
    'suppress_unstable_features_warning = true',
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
