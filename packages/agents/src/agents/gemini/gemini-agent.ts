import * as z from 'zod'
import type { AgentAdapter, AgentParser, AgentTaskInput, LaunchFile, LaunchSpec } from '../../agent-adapter.js'
import { argsOption, modelOption, providerOption } from '../../agent-options.js'
import { commonLaunch, promptScript } from '../../launch-script.js'
import { isRemote, type McpServer } from '../../mcp-server.js'
import { GeminiParser } from './gemini-parser.js'

/** Gemini CLI without a terminal. Its settings and sessions lie in the task's state directory. */
export const geminiAgent: AgentAdapter = {
  name: 'gemini',
  title: 'Gemini CLI',
  commitsAs: { name: 'Gemini CLI', email: 'gemini@localhost' },
  summary: 'Google’s agent',
  options: z.strictObject({
    model: modelOption.optional(),
    args: argsOption.optional(),
    provider: providerOption.optional(),
  }),
  capabilities: {
    resume: true,
    plan: true,
    steer: { no: 'reads nothing after its prompt; `gemini --acp` under the agent acp does' },
    ask: { no: 'does not ask without a terminal; `gemini --acp` under the agent acp can' },
    usage: true,
    mcp: true,
    acp: { no: 'is started with its own protocol; `gemini --acp` runs under the agent acp' },
  },
  install: { package: '@google/gemini-cli', version: '0.61.0', program: 'gemini' },
  speaks: ['google'],
  launch: geminiLaunch,
  createParser: (): AgentParser => new GeminiParser(),
  sessions: { paths: ['gemini/.gemini/tmp', 'gemini/.gemini/projects.json'] },
}

// Without it leaving plan mode is approved by itself, and the next write goes through.
const planPolicy = '[[rule]]\ntoolName = "exit_plan_mode"\ndecision = "deny"\npriority = 999\n'

function geminiLaunch(task: AgentTaskInput): LaunchSpec {
  const { env, promptFile } = commonLaunch(task)
  const home = `${task.stateDir}/gemini`
  const { model, args = [] } = task.options
  const policyFile = `${home}/plan-policy.toml`
  const options = ['--output-format', 'stream-json']
  options.push(...(task.mode === 'plan' ? ['--approval-mode', 'plan', '--policy', policyFile] : ['--yolo']))
  if (model) options.push('-m', model)
  if (task.resume) options.push('--resume', task.resume.sessionId)
  const files: LaunchFile[] = [
    promptFile,
    { path: `${home}/.gemini/settings.json`, content: settings(task.mcpServers ?? []), mode: '0600' },
    ...(task.instructions ? [{ path: `${home}/.gemini/AGENTS.md`, content: task.instructions, mode: '0600' }] : []),
    ...(task.mode === 'plan' ? [{ path: policyFile, content: planPolicy, mode: '0600' }] : []),
  ]
  return {
    argv: ['/bin/sh', '-c', promptScript('gemini'), 'gemini', ...options, ...args],
    env: {
      ...env,
      GEMINI_CLI_HOME: home,
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      ...(task.broker ? { GOOGLE_GEMINI_BASE_URL: task.broker.baseUrl, GEMINI_API_KEY: task.broker.token } : {}),
    },
    cwd: task.workDir,
    files,
  }
}

function settings(servers: readonly McpServer[]): string {
  return JSON.stringify({
    security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false },
    general: { enableAutoUpdate: false },
    // Gemini's own name for such a file alone would leave out what most repositories have.
    context: { fileName: ['AGENTS.md', 'CLAUDE.md', 'GEMINI.md'] },
    mcpServers: Object.fromEntries(servers.map((server) => [server.name, mcpEntry(server)])),
  })
}

function mcpEntry(server: McpServer): object {
  if (isRemote(server)) return { httpUrl: server.url, headers: server.headers ?? {}, trust: true }
  return { command: server.command, args: server.args ?? [], env: server.env ?? {}, trust: true }
}
