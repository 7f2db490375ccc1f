import type { AgentAdapter, AgentParser, AgentTaskInput, LaunchSpec } from './agent-adapter.js'
import { ClaudeParser } from './claude-parser.js'

/** Where agents are mounted in every sandbox. */
export const agentsBinDirectory = '/opt/corral/agents/bin'

/**
 * Claude Code in print mode. The prompt is a file on standard input and the model is reached through the broker alone:
 * the token it is given names one task and is worth nothing outside the sandbox.
 */
export const claudeAgent: AgentAdapter = {
  name: 'claude',
  provider: 'anthropic',
  requires: { program: 'claude', install: 'corral agent install claude' },
  command: claudeLaunch,
  createParser: (): AgentParser => new ClaudeParser(),
}

// A redirection instead of a write to stdin: a start that is repeated after a crash finds the prompt in place.
const script = `PATH="$PATH:${agentsBinDirectory}"; exec claude "$@" < "$CORRAL_PROMPT_FILE"`

function claudeLaunch(task: AgentTaskInput): LaunchSpec {
  const promptFile = `${task.stateDir}/prompt.md`
  const options = ['-p', '--output-format', 'stream-json', '--verbose', '--dangerously-skip-permissions']
  if (task.model) options.push('--model', task.model)
  return {
    argv: ['/bin/sh', '-c', script, 'claude', ...options],
    env: {
      CORRAL_TASK_ID: task.taskId,
      CORRAL_PROMPT_FILE: promptFile,
      CLAUDE_CONFIG_DIR: `${task.stateDir}/claude`,
      ...(task.broker ? { ANTHROPIC_BASE_URL: task.broker.baseUrl, ANTHROPIC_AUTH_TOKEN: task.broker.token } : {}),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      // Says that the sandbox is the boundary; as root the CLI refuses to skip permissions without it.
      IS_SANDBOX: '1',
      CI: 'true',
    },
    cwd: task.workDir,
    files: [{ path: promptFile, content: task.prompt, mode: '0600' }],
  }
}
