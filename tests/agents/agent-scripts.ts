import type { ModelBlock } from '@corral/testing'

/** What differs between the agents in a test: the tool each offers its model, and what is called to run a command. */
export interface AgentScript {
  readonly agent: string
  /** More of the request's `agent`. */
  readonly options: Readonly<Record<string, unknown>>
  readonly provider: string
  /** How the platform is told where the model is. */
  readonly baseUrlVariable: string
  run(command: string): ModelBlock
  /** A call of a tool of an MCP server, under the name the agent gives it. */
  callTool(server: string, tool: string): ModelBlock
  /** Its session does not outlive its process: it is told again what went before. */
  readonly forgets?: boolean
}

const use = (name: string, input: Record<string, unknown>, namespace?: string): ModelBlock => ({
  ...{ type: 'tool_use', name, input },
  ...(namespace ? { namespace } : {}),
})

export const agentScripts: readonly AgentScript[] = [
  {
    agent: 'claude',
    options: { model: 'claude-sonnet-4-5-20250929' },
    provider: 'anthropic',
    baseUrlVariable: 'ANTHROPIC_BASE_URL',
    run: (command) => use('Bash', { command, description: 'run' }),
    callTool: (server, tool) => use(`mcp__${server}__${tool}`, {}),
  },
  {
    agent: 'codex',
    options: { model: 'gpt-5' },
    provider: 'openai',
    baseUrlVariable: 'OPENAI_BASE_URL',
    run: (command) => use('exec_command', { cmd: command }),
    callTool: (server, tool) => use(tool, {}, `mcp__${server}`),
  },
  {
    agent: 'gemini',
    options: { model: 'gemini-2.5-pro' },
    provider: 'google',
    baseUrlVariable: 'GOOGLE_GEMINI_BASE_URL',
    run: (command) => use('run_shell_command', { command, description: 'run' }),
    callTool: (server, tool) => use(`mcp_${server}_${tool}`, {}),
  },
  {
    agent: 'opencode',
    options: { model: 'gpt-5', provider: 'openai' },
    provider: 'openai',
    baseUrlVariable: 'OPENAI_BASE_URL',
    run: (command) => use('bash', { command, description: 'run' }),
    callTool: (server, tool) => use(`${server}_${tool}`, {}),
  },
]

/** Writes a file, commits it, and says so. */
export function editAndCommit(script: AgentScript, file: string): ModelBlock[][] {
  return [
    [{ type: 'text', text: 'I will write the file.' }, script.run(`echo "hello from ${script.agent}" > ${file}`)],
    [script.run(`git add ${file} && git commit -q -m "Say hello"`)],
    [{ type: 'text', text: `Done: ${file} says hello.` }],
  ]
}

const gemini = agentScripts.find(({ agent }) => agent === 'gemini')!
const geminiSettings = '{"security":{"auth":{"selectedType":"gemini-api-key"}}}'

/** Gemini CLI spoken to over the Agent Client Protocol. */
export const acpScript: AgentScript = {
  ...gemini,
  agent: 'acp',
  options: {
    command: `mkdir -p ~/.gemini && echo '${geminiSettings}' > ~/.gemini/settings.json && GEMINI_CLI_TRUST_WORKSPACE=true exec gemini -m gemini-2.5-pro --acp`,
    provider: 'google',
  },
  forgets: true,
}

const oneCall = `node -e '
  fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: process.env.CORRAL_PROMPT }], tools: [{}] }),
  }).then((answer) => answer.text()).then(console.log)'`

/** A command line that asks the model one thing. */
const commandScript: AgentScript = {
  agent: 'command',
  options: { command: oneCall, provider: 'openai' },
  provider: 'openai',
  baseUrlVariable: 'OPENAI_BASE_URL',
  run: (command) => use('shell', { command }),
  callTool: (_, tool) => use(tool, {}),
}

/** One for each agent there is. */
export const tableScripts: readonly AgentScript[] = [...agentScripts, acpScript, commandScript]
