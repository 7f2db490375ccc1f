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
}

const use = (name: string, input: Record<string, unknown>): ModelBlock => ({ type: 'tool_use', name, input })

export const agentScripts: readonly AgentScript[] = [
  {
    agent: 'claude',
    options: { model: 'claude-sonnet-4-5-20250929' },
    provider: 'anthropic',
    baseUrlVariable: 'ANTHROPIC_BASE_URL',
    run: (command) => use('Bash', { command, description: 'run' }),
  },
  {
    agent: 'codex',
    options: { model: 'gpt-5' },
    provider: 'openai',
    baseUrlVariable: 'OPENAI_BASE_URL',
    run: (command) => use('exec_command', { cmd: command }),
  },
  {
    agent: 'gemini',
    options: { model: 'gemini-2.5-pro' },
    provider: 'google',
    baseUrlVariable: 'GOOGLE_GEMINI_BASE_URL',
    run: (command) => use('run_shell_command', { command, description: 'run' }),
  },
  {
    agent: 'opencode',
    options: { model: 'gpt-5', provider: 'openai' },
    provider: 'openai',
    baseUrlVariable: 'OPENAI_BASE_URL',
    run: (command) => use('bash', { command, description: 'run' }),
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
