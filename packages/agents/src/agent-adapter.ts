import type { AgentEvent, OutputStream } from '@corral/protocol'

/** What an adapter is told about the task. Paths are paths inside the sandbox. */
export interface AgentTaskInput {
  readonly taskId: string
  readonly prompt: string
  /** The work tree the agent works in. */
  readonly workDir: string
  /** A directory outside the work tree for prompt, settings and state of the agent. */
  readonly stateDir: string
  /** The command line of the `command` agent. */
  readonly command?: string | undefined
  readonly model?: string | undefined
  /** How the agent reaches its model: the broker's address for this task and the token that names the task. */
  readonly broker?: { readonly baseUrl: string; readonly token: string } | undefined
}

export interface LaunchFile {
  readonly path: string
  readonly content: string
  /** Octal permission bits. */
  readonly mode: string
}

/** How to start an agent. Files are written before the start. */
export interface LaunchSpec {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly files: readonly LaunchFile[]
  /** Written to standard input, which is then closed. Absent: the agent reads end of file at once. */
  readonly stdin?: string | undefined
}

export interface AgentExit {
  /** 128 + n for an agent ended by signal n. */
  readonly exitCode: number
  readonly signal?: number | undefined
}

/** What a run amounts to once the agent has ended. */
export type AgentVerdict =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly cause: 'AgentFailed' | 'AgentKilled' | 'AgentNotInstalled' | 'ModelRefused' | 'ModelUnavailable'
      readonly message: string
    }

/**
 * Turns one agent's output into events. Pure state: chunks may be cut anywhere, garbage is tolerated, memory and event
 * sizes are bounded. Feeding the same bytes in the same order gives the same events, however they are cut.
 */
export interface AgentParser {
  push(chunk: Uint8Array, stream: OutputStream): AgentEvent[]
  /** The rest, once the agent has ended. */
  end(exit: AgentExit): AgentEvent[]
  /** Valid after `end`. */
  readonly verdict: AgentVerdict
}

/** One coding agent: how to start it and how to read it. */
export interface AgentAdapter {
  readonly name: string
  /** Whether it talks to a model through the broker, and through which provider's routes. */
  readonly provider?: 'anthropic' | undefined
  /** The program to look for in the sandbox before starting, with the command that installs it. */
  readonly requires?: { readonly program: string; readonly install: string } | undefined
  command(task: AgentTaskInput): LaunchSpec
  createParser(): AgentParser
}
