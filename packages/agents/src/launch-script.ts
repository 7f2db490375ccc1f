import type { AgentTaskInput, LaunchFile } from './agent-adapter.js'

/** Where agents are mounted in every sandbox. */
export const agentsBinDirectory = '/opt/corral/agents/bin'

/**
 * A command line that finds programs of installed agents behind those of the sandbox, and reads the prompt from a file.
 * A redirection instead of a write to standard input: a start that is repeated after a crash finds the prompt in place.
 */
export function promptScript(program: string): string {
  return `PATH="$PATH:${agentsBinDirectory}"; export PATH; exec ${program} "$@" < "$CORRAL_PROMPT_FILE"`
}

/** What every agent finds in its environment and beside it. */
export function commonLaunch(task: AgentTaskInput): { env: Record<string, string>; promptFile: LaunchFile } {
  const path = `${task.stateDir}/prompt.md`
  return {
    env: { CORRAL_TASK_ID: task.taskId, CORRAL_PROMPT_FILE: path, CI: 'true' },
    promptFile: { path, content: task.prompt, mode: '0600' },
  }
}
