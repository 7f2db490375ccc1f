import type { AgentEvent, OutputStream } from '@corral/protocol'
import * as z from 'zod'
import type {
  AgentAdapter,
  AgentExit,
  AgentParser,
  AgentTaskInput,
  AgentVerdict,
  LaunchSpec,
} from '../../agent-adapter.js'
import { commandOption, modelOption, providerOption } from '../../agent-options.js'
import { exitVerdict } from '../../exit-verdict.js'
import { commonLaunch } from '../../launch-script.js'
import { OutputJoiner } from '../../output-joiner.js'
import { clientEnvironment } from '../../providers/client-environment.js'

/**
 * Any command line, run by `/bin/sh -c` in the work tree. It finds the prompt in `CORRAL_PROMPT` and, whatever its
 * length, in the file `CORRAL_PROMPT_FILE`; its output becomes `output` events; its exit code decides. With a provider
 * named it also finds the broker, under the names the provider's own clients look for.
 */
export const commandAgent: AgentAdapter = {
  name: 'command',
  title: 'a command line',
  summary: 'any command line',
  options: z.strictObject({
    command: commandOption,
    model: modelOption.optional(),
    provider: providerOption.optional(),
  }),
  capabilities: {
    resume: { no: 'a command line has no session' },
    plan: { no: 'a command line cannot be held to reading' },
    steer: { no: 'a command line reads nothing after its prompt' },
    ask: { no: 'a command line has no way to ask' },
    usage: true,
    mcp: { no: 'a command line has no settings for it' },
    acp: { no: 'the agent acp is for that' },
  },
  launch: commandLaunch,
  createParser: (): AgentParser => new CommandParser(),
}

/** Linux refuses a single environment string of 128 KiB; a longer prompt is in the file only. */
const maxPromptInEnvBytes = 96 * 1024

function commandLaunch(task: AgentTaskInput): LaunchSpec {
  const { command, model } = task.options
  if (!command) throw new TypeError('the command agent needs a command')
  const { env, promptFile } = commonLaunch(task)
  const fits = new TextEncoder().encode(task.prompt).length <= maxPromptInEnvBytes
  return {
    argv: ['/bin/sh', '-c', command],
    env: {
      ...env,
      ...(fits ? { CORRAL_PROMPT: task.prompt } : {}),
      ...(model ? { CORRAL_MODEL: model } : {}),
      ...(task.broker ? clientEnvironment(task.broker) : {}),
    },
    cwd: task.workDir,
    files: [promptFile],
  }
}

class CommandParser implements AgentParser {
  readonly #output = { stdout: new OutputJoiner('stdout'), stderr: new OutputJoiner('stderr') }
  verdict: AgentVerdict = { ok: false, cause: 'AgentFailed', message: 'the command has not ended' }

  push(chunk: Uint8Array, stream: OutputStream): AgentEvent[] {
    return this.#output[stream].push(chunk)
  }

  end(exit: AgentExit): AgentEvent[] {
    this.verdict = exitVerdict('the command', exit)
    return [...this.#output.stdout.end(), ...this.#output.stderr.end()]
  }

  skip(): AgentEvent[] {
    return [...this.#output.stdout.skip(), ...this.#output.stderr.skip()]
  }
}
