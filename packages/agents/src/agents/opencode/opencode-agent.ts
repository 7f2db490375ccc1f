import * as z from 'zod'
import type { AgentAdapter, AgentParser, AgentTaskInput, BrokerAccess, LaunchSpec } from '../../agent-adapter.js'
import { argsOption, modelOption, providerOption } from '../../agent-options.js'
import { commonLaunch, promptScript } from '../../launch-script.js'
import { isRemote, type McpServer } from '../../mcp-server.js'
import { OpencodeParser } from './opencode-parser.js'

/** OpenCode without a terminal. It speaks every wire API, so `provider` decides whose model it uses. */
export const opencodeAgent: AgentAdapter = {
  name: 'opencode',
  title: 'OpenCode',
  commitsAs: { name: 'OpenCode', email: 'opencode@localhost' },
  summary: 'an open-source agent for the models of any provider',
  options: z.strictObject({
    model: modelOption.optional(),
    /** OpenCode's word for it is variant; which ones there are depends on the model. */
    effort: z
      .string()
      .regex(/^[a-z]{1,20}$/, 'must be a word such as "high"')
      .optional(),
    args: argsOption.optional(),
    provider: providerOption.optional(),
  }),
  capabilities: {
    resume: true,
    plan: true,
    steer: { no: '`opencode run` reads nothing after its prompt; `opencode acp` under the agent acp does' },
    ask: { no: '`opencode run` does not ask; `opencode acp` under the agent acp can' },
    usage: true,
    mcp: true,
    acp: { no: 'is started with its own protocol; `opencode acp` runs under the agent acp' },
  },
  install: { package: 'opencode-ai', version: '1.18.33', program: 'opencode' },
  speaks: ['anthropic', 'openai', 'google'],
  launch: opencodeLaunch,
  createParser: (): AgentParser => new OpencodeParser(),
  sessions: { paths: ['opencode/opencode.db', 'opencode/opencode.db-wal', 'opencode/opencode.db-shm'] },
}

/** OpenCode has no default of its own for a provider it does not know. */
const wireApis: Readonly<Record<string, { npm: string; path: string; defaultModel: string }>> = {
  anthropic: { npm: '@ai-sdk/anthropic', path: '/v1', defaultModel: 'claude-sonnet-4-5' },
  openai: { npm: '@ai-sdk/openai-compatible', path: '/v1', defaultModel: 'gpt-5' },
  google: { npm: '@ai-sdk/google', path: '/v1beta', defaultModel: 'gemini-2.5-pro' },
}

function opencodeLaunch(task: AgentTaskInput): LaunchSpec {
  const { env, promptFile } = commonLaunch(task)
  const home = `${task.stateDir}/opencode`
  const { effort, args = [] } = task.options
  const options = ['run', '--format', 'json', '--thinking']
  if (task.mode === 'plan') options.push('--agent', 'plan')
  if (effort) options.push('--variant', effort)
  if (task.resume) options.push('-s', task.resume.sessionId, ...(task.mode === 'plan' ? [] : ['--agent', 'build']))
  const instructionsFile = `${home}/instructions.md`
  return {
    argv: ['/bin/sh', '-c', promptScript('opencode'), 'opencode', ...options, ...args],
    env: {
      ...env,
      OPENCODE_CONFIG: `${home}/opencode.json`,
      OPENCODE_DB: `${home}/opencode.db`,
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      ...(task.broker ? { CORRAL_MODEL_TOKEN: task.broker.token } : {}),
    },
    cwd: task.workDir,
    files: [
      promptFile,
      { path: `${home}/opencode.json`, content: JSON.stringify(config(task, instructionsFile)), mode: '0600' },
      ...(task.instructions ? [{ path: instructionsFile, content: task.instructions, mode: '0600' }] : []),
    ],
  }
}

function config(task: AgentTaskInput, instructionsFile: string): object {
  return {
    autoupdate: false,
    share: 'disabled',
    permission: 'allow',
    // The general permission would let the plan agent write.
    agent: { plan: { permission: { edit: 'deny', bash: 'deny' } } },
    ...(task.instructions ? { instructions: [instructionsFile] } : {}),
    ...(task.broker ? modelConfig(task.broker, task.options.model) : {}),
    mcp: Object.fromEntries((task.mcpServers ?? []).map((server) => [server.name, mcpEntry(server)])),
  }
}

function modelConfig(broker: BrokerAccess, asked: string | undefined): object {
  const api = wireApis[broker.kind]
  if (!api) throw new TypeError(`OpenCode does not speak the API of "${broker.kind}"`)
  const model = asked ?? api.defaultModel
  return {
    model: `corral/${model}`,
    small_model: `corral/${model}`,
    provider: {
      corral: {
        npm: api.npm,
        options: { baseURL: `${broker.baseUrl}${api.path}`, apiKey: '{env:CORRAL_MODEL_TOKEN}' },
        models: { [model]: { tool_call: true } },
      },
    },
  }
}

function mcpEntry(server: McpServer): object {
  if (isRemote(server)) return { type: 'remote', url: server.url, headers: server.headers ?? {}, enabled: true }
  const command = [server.command, ...(server.args ?? [])]
  return { type: 'local', command, environment: server.env ?? {}, enabled: true }
}
