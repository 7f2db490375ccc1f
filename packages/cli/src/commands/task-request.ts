import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { agentAdapters, commandLineAgentName, findAgent } from '@corral/agents'
import {
  type AgentChoice,
  type AskPolicy,
  askPolicies,
  type CreateTaskRequest,
  checkLimits,
  createTaskRequestSchema,
  credentialHint,
  credentialInUrl,
  issueWords,
  taskLimits,
} from '@corral/protocol'
import { highestPriority, lowestPriority } from '@corral/resources/task-words'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { CliError } from '../cli-error.js'
import {
  parseAmount,
  parseDurationSeconds,
  parseNumber,
  parsePriority,
  parseTimeSeconds,
  parseUpTo,
} from '../output/parse-duration.js'
import { identityFrom } from '../platform/identity-option.js'
import { attemptsOf, parseAttempts } from './attempt-options.js'
import { checksRequest, parseRounds } from './check-options.js'
import { type CommonOptions, withPlatform } from './common.js'
import { mcpServersFrom } from './mcp-option.js'
import { lookAtRepository, readFiles, readPrompt } from './task-inputs.js'

export interface TaskOptions extends CommonOptions {
  repo?: string
  project?: string
  author?: string
  committer?: string
  sign?: boolean
  /** One, or several for attempts. */
  agent?: string | string[]
  attempts?: number
  command?: string
  model?: string
  effort?: string
  agentArg?: string[]
  provider?: string
  sandboxProvider?: string
  instructions?: string
  mcp?: string[]
  maxTokens?: number
  maxCost?: number
  branch?: string
  base?: string
  submodules?: boolean | 'recursive'
  lfs?: boolean
  timeout?: number
  setup?: string
  part?: string
  snapshot?: boolean
  allow?: string[]
  allowSetup?: string[]
  pool?: string
  template?: string
  keep?: boolean
  plan?: boolean
  ask?: AskPolicy
  hold?: number
  priority?: number
  promptFile?: string
  file?: string[]
  includeUncommitted?: boolean
  artifact?: string[]
  check?: string[]
  checkTimeout?: number
  checkRounds?: number
  pushFailed?: boolean
}

const collect = (value: string, all: string[] = []): string[] => [...all, value]

function parseSubmodules(value: string): 'recursive' {
  if (value !== 'recursive') throw new InvalidArgumentError('Use --submodules or --submodules recursive.')
  return value
}

/** The options that describe a task, shared by `run` and `task create`. */
export function withTask(command: Command): Command {
  return withPlatform(command)
    .option(
      '--repo <path-or-url>',
      'repository to work on: a path, file://, https:// or ssh:// (default: that of the project, else ".")',
    )
    .option('--project <name>', 'take what is not said here from this project (see `corral project`)')
    .option('--prompt-file <file>', 'read the prompt from a file; - is standard input')
    .option(
      '--file <path[:dest]>',
      'put this file into the checkout, at DEST below its top; not part of the result; may be repeated',
      collect,
    )
    .option('--check <[name=]cmd>', 'run this after the agent; what fails goes back to it; may be repeated', collect)
    .option(
      '--check-timeout <duration>',
      'time each check has (default: 10m)',
      parseUpTo(checkLimits.maxTimeoutSeconds, parseTimeSeconds),
    )
    .option('--check-rounds <n>', 'how often the agent is sent back with what failed (default: 2)', parseRounds)
    .option('--no-push-failed', 'do not push a branch whose checks still fail')
    .option('--artifact <path>', 'keep this file or directory of the checkout with the task; may be repeated', collect)
    .option('--include-uncommitted', 'take uncommitted and untracked files along, as a first commit')
    .option(
      '--agent <name>',
      'agent that does the work; `corral agent list` shows them; repeated: each makes an attempt',
      collect,
    )
    .option(
      '--attempts <n>',
      'let agents try it so often, each on a branch of its own (see `corral task compare`)',
      parseAttempts,
    )
    .option(
      '--command <cmd>',
      'command line of the agents command and acp; the prompt is in $CORRAL_PROMPT and $CORRAL_PROMPT_FILE',
    )
    .option('--model <name>', 'model of the agent')
    .option('--effort <level>', 'how hard the model shall think, in the words of the agent, such as low or high')
    .option('--provider <name>', 'provider or named endpoint of the model (see `corral endpoint`)')
    .option(
      '--sandbox-provider <name>',
      'cluster the sandbox is in (see `corral provider list`; default: the platform’s)',
    )
    .option('--agent-arg <arg>', 'one more argument for the program of the agent; may be repeated', collect)
    .option('--instructions <text>', 'said to the agent beside the instruction files of the repository')
    .option(
      '--mcp <name=cmd-or-url>',
      'give the agent the tools of this MCP server: a command line inside the sandbox, or an address that --allow grants; may be repeated',
      collect,
    )
    .option('--max-tokens <n>', 'end the agent before it uses more tokens than this', parseNumber)
    .option('--max-cost <usd>', 'end the agent before it spends more US dollars than this', parseAmount)
    .option('--branch <name>', 'branch for the work (default: corral/<task id>)')
    .option('--base <name>', 'branch to start from (default: the repository’s default branch)')
    .option(
      '--submodules [recursive]',
      'bring submodules in, fetched with your credentials; recursive: also those inside submodules',
      parseSubmodules,
    )
    .option('--lfs', 'bring the contents of Git LFS files in and store the agent’s with it, with your credentials')
    .option(
      '--timeout <duration>',
      'time the agent has, such as 90s, 30m or 2h',
      parseUpTo(taskLimits.maxTimeoutSeconds, parseTimeSeconds),
    )
    .option(
      '--priority <n>',
      `among waiting tasks the highest goes first (default: 0, from ${lowestPriority} to ${highestPriority})`,
      parsePriority,
    )
    .option('--setup <cmd>', 'command to run before the agent (default: .corral/setup of the repository)')
    .option('--no-snapshot', 'set up from nothing, whatever the environment of the repository has built')
    .option('--part <name>', 'part of the repository to set up, one of `parts` of its environment file')
    .option(
      '--allow <host:port>',
      'let set-up and the agent reach this address, or with "packages" the package mirror; may be repeated',
      collect,
    )
    .option('--allow-setup <host:port>', 'the same for set-up alone: closed before the agent starts', collect)
    .option('--pool <name>', 'sandbox pool')
    .option('--template <name>', 'sandbox template')
    .option('--plan', 'let the agent plan first and wait for your approval before it changes anything')
    .addOption(
      new Option(
        '--ask <what>',
        'let the agent ask you: "input" for what it wants to know, "always" for every permission too',
      ).choices([...askPolicies]),
    )
    .option(
      '--hold <duration>',
      'how long the sandbox is kept for you, such as 10m: for a follow-up after the task (default: not), for an answer before its end (default: 5m)',
      parseUpTo(taskLimits.maxTimeoutSeconds, parseDurationSeconds),
    )
    .option('--author <"name <email>">', 'author of the commits (default: you, as git is configured)')
    .option('--committer <"name <email>">', 'committer of the commits (default: you, as git is configured)')
    .option('--sign', 'sign the commits outside the sandbox, as git is configured')
    .option('--no-sign', 'do not sign them, whatever the project says')
    .option('--keep', 'keep the sandbox of a failed task for `corral task shell`')
}

/** The request that arguments and options stand for; reads the files they name. `say` gets what the user should know. */
export async function readTaskRequest(
  argument: string | undefined,
  options: TaskOptions,
  say: (text: string) => void,
): Promise<CreateTaskRequest> {
  // First without looking at anything: a typing error shall not read standard input or make a commit.
  taskRequest('-', options)
  const prompt = await readPrompt(argument, options.promptFile)
  const given = repoOf(options)
  if (given === undefined && options.includeUncommitted)
    throw new CliError('--include-uncommitted goes with --repo', { exitCode: 2 })
  const found: { repo?: string; base?: string } = given === undefined ? {} : await lookAtRepository(given, options, say)
  const files = readFiles(options.file ?? [], found.repo ?? process.cwd())
  return taskRequest(prompt, { ...options, ...found }, files)
}

export function taskRequest(
  prompt: string,
  options: TaskOptions,
  files: CreateTaskRequest['files'] = [],
): CreateTaskRequest {
  const { agent, attempts } = agentsOf(options)
  const repo = repoOf(options)
  const request = {
    ...(repo === undefined ? {} : { repo }),
    ...(options.project ? { project: options.project } : {}),
    ...(options.author ? { author: identityFrom('--author', options.author) } : {}),
    ...(options.committer ? { committer: identityFrom('--committer', options.committer) } : {}),
    ...(options.sign === undefined ? {} : { sign: options.sign }),
    ...(files.length > 0 ? { files } : {}),
    task: prompt,
    ...(agent ? { agent } : {}),
    ...(attempts ? { attempts } : {}),
    ...(options.branch ? { new_branch: options.branch } : {}),
    ...(options.base ? { base_branch: options.base } : {}),
    ...(options.submodules ? { submodules: options.submodules } : {}),
    ...(options.lfs ? { lfs: true } : {}),
    ...(options.timeout ? { timeout_seconds: options.timeout } : {}),
    ...(options.priority === undefined ? {} : { priority: options.priority }),
    ...(options.setup ? { setup: options.setup } : {}),
    ...(options.part ? { part: options.part } : {}),
    ...(options.snapshot === false ? { use_snapshot: false } : {}),
    ...checksRequest(options),
    ...(options.artifact ? { artifacts: options.artifact } : {}),
    ...(options.allow ? { egress: options.allow } : {}),
    ...(options.allowSetup ? { setup_egress: options.allowSetup } : {}),
    ...(options.pool || options.template || options.sandboxProvider
      ? {
          sandbox: {
            ...(options.pool ? { pool: options.pool } : {}),
            ...(options.template ? { template: options.template } : {}),
            ...(options.sandboxProvider ? { provider: options.sandboxProvider } : {}),
          },
        }
      : {}),
    ...(options.keep ? { keep_sandbox: true } : {}),
    ...(options.plan ? { mode: 'plan' as const } : {}),
    ...(options.ask ? { ask: options.ask } : {}),
    ...(options.hold === undefined ? {} : { hold_sandbox_seconds: options.hold }),
    ...(options.instructions ? { instructions: options.instructions } : {}),
    ...(options.mcp ? { mcp_servers: mcpServersFrom(options.mcp) } : {}),
    ...(options.maxTokens || options.maxCost
      ? {
          limits: {
            ...(options.maxTokens ? { max_tokens: options.maxTokens } : {}),
            ...(options.maxCost ? { max_cost_usd: options.maxCost } : {}),
          },
        }
      : {}),
  }
  const checked = createTaskRequestSchema.safeParse(request)
  if (checked.success) return checked.data
  throw new CliError(optionWords(issueWords(checked.error.issues, 'request')[0] ?? 'the request is not valid'), {
    exitCode: 2,
    hint: 'See `corral run --help`.',
  })
}

const optionOf: Readonly<Record<string, string>> = {
  repo: '--repo',
  project: '--project',
  task: 'the prompt',
  new_branch: '--branch',
  base_branch: '--base',
  timeout_seconds: '--timeout',
  hold_sandbox_seconds: '--hold',
  priority: '--priority',
  setup: '--setup',
  part: '--part',
  use_snapshot: '--no-snapshot',
  artifacts: '--artifact',
  checks: '--check',
  check_rounds: '--check-rounds',
  egress: '--allow',
  setup_egress: '--allow-setup',
  files: '--file',
  instructions: '--instructions',
  mcp_servers: '--mcp',
  'sandbox.pool': '--pool',
  'sandbox.template': '--template',
  'sandbox.provider': '--sandbox-provider',
  'limits.max_tokens': '--max-tokens',
  'limits.max_cost_usd': '--max-cost',
}

/** What is wrong, in the words of this command line: `--allow: must be host:port` instead of `egress[0]: …`. */
function optionWords(problem: string): string {
  return problem.replace(/^([a-z_.]+)(\[\d+\])?(\.[a-z_]+)?: /, (whole, field: string) => {
    const option = optionOf[field]
    return option ? `${option}: ` : whole
  })
}

/** One agent, or one for every attempt: they take turns where there are more attempts. */
function agentsOf(options: TaskOptions): Pick<CreateTaskRequest, 'agent' | 'attempts'> {
  const named = [options.agent ?? []].flat()
  const choices = (named.length === 0 ? [undefined] : named).map((name) => agentChoice(name, options))
  const attempts = attemptsOf(choices, options.attempts)
  if (attempts) return { attempts }
  return choices[0] ? { agent: choices[0] } : {}
}

/** The repository that is meant; undefined where the project names it. */
function repoOf({ repo, project }: TaskOptions): string | undefined {
  if (repo !== undefined) return absoluteRepo(repo)
  return project === undefined ? absoluteRepo('.') : undefined
}

/** What the options say of the agent; the agent itself checks them on the platform. */
function agentChoice(agent: string | undefined, options: TaskOptions): AgentChoice | undefined {
  const { command, model, effort, agentArg, provider } = options
  const given = {
    ...(command ? { command } : {}),
    ...(model ? { model } : {}),
    ...(effort ? { effort } : {}),
    ...(agentArg ? { args: agentArg } : {}),
    ...(provider ? { provider } : {}),
  }
  const name = agent ?? (command ? commandLineAgentName : undefined)
  if (name !== undefined) return checkedChoice(name, given)
  if (Object.keys(given).length === 0) return undefined
  throw new CliError(`${Object.keys(given).join(', ')}: for which agent?`, {
    exitCode: 2,
    hint: 'Name it with --agent; `corral agent list` shows them.',
  })
}

/** Told here already: a platform need not be started for a typing error. */
function checkedChoice(name: string, given: object): AgentChoice {
  const adapter = findAgent(name)
  if (!adapter)
    throw new CliError(`there is no agent "${name}"`, {
      exitCode: 2,
      hint: `Known: ${[...agentAdapters.keys()].join(', ')}.`,
    })
  const checked = adapter.options.safeParse(given)
  if (checked.success) return { name, ...given }
  if (checked.error.issues.some(({ path }) => path[0] === 'command') && !('command' in given))
    throw new CliError(`--agent ${name} needs the command line that it runs`, {
      exitCode: 2,
      hint: 'Give it with --command; its prompt is in $CORRAL_PROMPT and $CORRAL_PROMPT_FILE.',
    })
  throw new CliError(
    `--agent ${name}: ${choiceWords(issueWords(checked.error.issues, 'agent')[0] ?? 'is not valid')}`,
    {
      exitCode: 2,
      hint: 'See `corral run --help`; docs/agents.md lists the options of every agent.',
    },
  )
}

/** `--model: must not be empty` for `model: …`, `takes no --model` for a field that the agent does not have. */
function choiceWords(problem: string): string {
  const flag = (field: string): string => (field === 'args' ? '--agent-arg' : `--${field}`)
  return problem
    .replace(/^agent: /, '')
    .replace(/^there is no field "(\w+)"/, (_, field: string) => `takes no ${flag(field)}`)
    .replace(/^(command|model|effort|args|provider)\b[^:]*: /, (_, field: string) => `${flag(field)}: `)
}

/** A path is made absolute here: the platform has another working directory. */
export function absoluteRepo(repo: string): string {
  // Taken for a path it would be repeated in the message that there is none.
  const credential = existsSync(repo) ? undefined : credentialInUrl(repo)
  if (credential)
    throw new CliError(`--repo: the address of the repository carries ${credential}`, {
      hint: credentialHint,
      exitCode: 2,
    })
  const isAddress = /^[a-z][a-z0-9+.-]*:\/\//i.test(repo) || (/^[\w.-]+@[\w.-]+:/.test(repo) && !existsSync(repo))
  return isAddress ? repo : resolve(repo)
}
