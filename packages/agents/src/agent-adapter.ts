import type { AgentEvent, AskPolicy, OutputStream } from '@corral/protocol'
import type * as z from 'zod'
import type { AgentCapabilities } from './agent-capabilities.js'
import type { AgentOptions } from './agent-options.js'
import type { McpServer } from './mcp-server.js'

/** How an agent reaches its model: the broker's address and the token that names the task there. */
export interface BrokerAccess {
  readonly baseUrl: string
  readonly token: string
  /** The wire API behind it, by the name of the provider that defined it: `anthropic`, `openai`, `google`. */
  readonly kind: string
}

/** What an adapter is told about the task. Paths are paths inside the sandbox. */
export interface AgentTaskInput {
  readonly taskId: string
  readonly prompt: string
  /** The work tree the agent works in. */
  readonly workDir: string
  /** A directory outside the work tree for prompt, settings and sessions of the agent. */
  readonly stateDir: string
  /** What the request's `agent` held beside its name, as the adapter's schema has let it through. */
  readonly options: AgentOptions
  /** Said to the agent beside what the repository's own instruction files say. */
  readonly instructions?: string | undefined
  readonly mcpServers?: readonly McpServer[] | undefined
  /** `plan`: look and answer with a plan, change nothing. */
  readonly mode?: 'work' | 'plan' | undefined
  /** What the agent asks a person; nothing where left out. Refused for agents that cannot (`ask`). */
  readonly ask?: AskPolicy | undefined
  /** A directory of this run alone: what the agent is told while it runs arrives there, a file each (`InboxEntry`). */
  readonly inboxDir?: string | undefined
  /** Goes on with a session whose files have been restored. */
  readonly resume?: { readonly sessionId: string } | undefined
  /** Absent: the agent uses no model, or one of its own. */
  readonly broker?: BrokerAccess | undefined
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

/** Something the agent waits for a person to decide. */
export interface AgentQuestion {
  /** Names it in its run: `q1` for the first. */
  readonly name: string
  /** The agent's own name for the request. */
  readonly id: string
  readonly kind: 'permission' | 'input'
  readonly text: string
  /** The tool call it is about. */
  readonly callId?: string | undefined
  /** What the channel needs beside the choice to write an answer. */
  readonly payload?: Readonly<Record<string, unknown>> | undefined
  /** What can be answered; empty where any text can. */
  readonly choices: readonly { readonly id: string; readonly label: string; readonly allows?: boolean }[]
}

export interface AgentAnswer {
  readonly choiceId?: string | undefined
  readonly text?: string | undefined
}

/**
 * Something the agent is told while it runs. The program beside the agent takes each file of the inbox once, by its name, and
 * says so in the output: a message that the agent took up is in `read` of the parser, an answered question no longer open.
 */
export type InboxEntry =
  | { readonly kind: 'message'; readonly id: string; readonly text: string }
  | { readonly kind: 'answer'; readonly name: string; readonly [detail: string]: unknown }

/**
 * Turns one agent's output into events. Pure state: chunks may be cut anywhere, garbage is tolerated, memory and event
 * sizes are bounded. Feeding the same bytes in the same order gives the same events, however they are cut.
 */
export interface AgentParser {
  push(chunk: Uint8Array, stream: OutputStream): AgentEvent[]
  /** A part of the output is missing here; answers what was still waiting for more. */
  skip(): AgentEvent[]
  /** The rest, once the agent has ended. */
  end(exit: AgentExit): AgentEvent[]
  /** Valid after `end`. */
  readonly verdict: AgentVerdict
  /** The agent's own name for its session, as soon as its output told it. */
  readonly sessionId?: string | undefined
  /** The last thing the agent said: its summary, or in plan mode its plan. */
  readonly finalText?: string | undefined
  /** Asked and not yet answered, in order. */
  readonly questions?: readonly AgentQuestion[] | undefined
  /** The ids of messages the agent took up while it ran, in order. */
  readonly read?: readonly string[] | undefined
}

/** What an agent keeps of a conversation, and so what a later task needs to go on with it. */
export interface AgentSessions {
  /** Files and directories below the state directory. They may be missing, and are restored to the same place. */
  readonly paths: readonly string[]
}

/** Where an agent comes from: a package of npm at the version this release was tested with. */
export interface AgentPackage {
  readonly package: string
  readonly version: string
  /** The program the package brings, found in `agentsBinDirectory`. */
  readonly program: string
}

/** One coding agent: how to install, start and read it, and what it can do. Its folder holds everything about it. */
export interface AgentAdapter {
  readonly name: string
  /** Its name as people write it. */
  readonly title: string
  readonly summary: string
  /** Checks and describes what a request's `agent` may hold beside the name. */
  readonly options: z.ZodType<AgentOptions>
  readonly capabilities: AgentCapabilities
  readonly install?: AgentPackage | undefined
  /** Whom commits of its work name as co-author; absent for what is no product with a name. */
  readonly commitsAs?: { readonly name: string; readonly email: string } | undefined
  /**
   * The wire APIs it speaks, by provider; the first is used where the request names none. Undefined: it talks to a model
   * only where the request names a provider.
   */
  readonly speaks?: readonly string[] | undefined
  launch(task: AgentTaskInput): LaunchSpec
  createParser(): AgentParser
  readonly sessions?: AgentSessions | undefined
  /** How an answer is told to the program beside the agent. */
  answer?(question: AgentQuestion, answer: AgentAnswer): InboxEntry
}
