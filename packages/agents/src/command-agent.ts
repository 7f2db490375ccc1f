import { type AgentEvent, eventLimits, type OutputStream } from '@corral/protocol'
import type { AgentAdapter, AgentExit, AgentParser, AgentTaskInput, AgentVerdict, LaunchSpec } from './agent-adapter.js'
import { exitVerdict } from './exit-verdict.js'
import { type LinePiece, LineSplitter } from './line-splitter.js'

/**
 * Any command line, run by `/bin/sh -c` in the work tree. It finds the prompt in `CORRAL_PROMPT` and, whatever its
 * length, in the file `CORRAL_PROMPT_FILE`; its output becomes `output` events; its exit code decides.
 */
export const commandAgent: AgentAdapter = {
  name: 'command',
  command: commandLaunch,
  createParser: (): AgentParser => new CommandParser(),
}

/** Linux refuses a single environment string of 128 KiB; a longer prompt is in the file only. */
const maxPromptInEnvBytes = 96 * 1024

function commandLaunch(task: AgentTaskInput): LaunchSpec {
  if (!task.command) throw new TypeError('the command agent needs a command')
  const promptFile = `${task.stateDir}/prompt.md`
  const fits = new TextEncoder().encode(task.prompt).length <= maxPromptInEnvBytes
  return {
    argv: ['/bin/sh', '-c', task.command],
    env: {
      CORRAL_TASK_ID: task.taskId,
      CORRAL_PROMPT_FILE: promptFile,
      ...(fits ? { CORRAL_PROMPT: task.prompt } : {}),
      CI: 'true',
    },
    cwd: task.workDir,
    files: [{ path: promptFile, content: task.prompt, mode: '0600' }],
  }
}

class CommandParser implements AgentParser {
  readonly #lines = {
    stdout: new LineSplitter(eventLimits.outputCharacters - 1),
    stderr: new LineSplitter(eventLimits.outputCharacters - 1),
  }
  verdict: AgentVerdict = { ok: false, cause: 'AgentFailed', message: 'the command has not ended' }

  push(chunk: Uint8Array, stream: OutputStream): AgentEvent[] {
    return this.#lines[stream].push(chunk).map((piece) => outputEvent(piece, stream))
  }

  end(exit: AgentExit): AgentEvent[] {
    this.verdict = exitVerdict('the command', exit)
    return [
      ...this.#lines.stdout.end().map((piece) => outputEvent(piece, 'stdout')),
      ...this.#lines.stderr.end().map((piece) => outputEvent(piece, 'stderr')),
    ]
  }
}

/** An output event for one line; the line end is part of the text, so that pieces can be joined again. */
export function outputEvent(piece: LinePiece, stream: OutputStream): AgentEvent {
  return { type: 'output', stream, text: piece.complete ? `${piece.text}\n` : piece.text }
}
