import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type AgentChoice, type CreateTaskRequest, createTaskRequestSchema, type TaskView } from '@corral/protocol'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { ensurePlatform } from '../client/find-platform.js'
import { TasksClient } from '../client/tasks-client.js'
import { describeEnd, describeEvent, exitCodeOf } from '../output/event-printer.js'
import { parseDurationSeconds } from '../output/parse-duration.js'
import { type CommonOptions, withPlatform } from './common.js'

export interface TaskOptions extends CommonOptions {
  repo?: string
  agent?: string
  command?: string
  model?: string
  branch?: string
  base?: string
  timeout?: number
  setup?: string
  allow?: string[]
  pool?: string
  template?: string
  keep?: boolean
}

const collect = (value: string, all: string[] = []): string[] => [...all, value]

/** The options that describe a task, shared by `run` and `task create`. */
export function withTask(command: Command): Command {
  return withPlatform(command)
    .option('--repo <path-or-url>', 'repository to work on: a path, file://, https:// or ssh://', '.')
    .option('--agent <name>', 'claude, or command (any command line, given with --command)')
    .option(
      '--command <cmd>',
      'command line of the command agent; the prompt is in $CORRAL_PROMPT and $CORRAL_PROMPT_FILE',
    )
    .option('--model <name>', 'model of the agent')
    .option('--branch <name>', 'branch for the work (default: corral/<task id>)')
    .option('--base <name>', 'branch to start from (default: the repository’s default branch)')
    .option('--timeout <duration>', 'time the agent has, such as 90s, 30m or 2h', parseDurationSeconds)
    .option('--setup <cmd>', 'command to run before the agent (default: .corral/setup of the repository)')
    .option('--allow <host:port>', 'let the task reach this address; may be repeated', collect)
    .option('--pool <name>', 'sandbox pool')
    .option('--template <name>', 'sandbox template')
    .option('--keep', 'keep the sandbox of a failed task for `corral task shell`')
}

export function addRunCommand(program: Command): void {
  withTask(program.command('run').argument('<prompt>', 'what the agent shall do'))
    .summary('run an agent on a repository and wait for the branch')
    .description(
      'Submits a task, shows what happens, and ends with the branch. Starts a platform when none is running.',
    )
    .addHelpText(
      'after',
      '\nExit codes: 0 succeeded, 1 failed, 2 wrong usage, 3 platform trouble, 4 timed out, 5 cancelled.\n\nExamples:\n  corral run "Fix the failing test" --repo ~/src/app\n  corral run "Format the code" --command ./format.sh\n  corral run "Update the lock file" --command "npm update" --allow packages.example.com:443\n',
    )
    .action(run)
}

async function run(prompt: string, options: TaskOptions): Promise<void> {
  const request = taskRequest(prompt, options)
  const platform = await ensurePlatform(options, (text) => process.stderr.write(`corral: ${text}\n`))
  const client = new TasksClient(platform)
  const { id } = await client.create(request)
  if (!options.json) process.stdout.write(`task ${id}\n`)
  let interrupts = 0
  const onInterrupt = (): void => {
    interrupts += 1
    if (interrupts > 1) process.exit(130)
    process.stderr.write('cancelling; what was done so far is kept (again to leave at once)\n')
    client.cancel(id).catch(() => process.exit(130))
  }
  process.on('SIGINT', onInterrupt)
  const task = await followTask(client, id, options)
  process.exitCode = exitCodeOf(task)
}

/** Shows a task's events to its end and answers how it ended. */
export async function followTask(
  client: TasksClient,
  id: string,
  options: { json?: boolean; after?: number },
): Promise<TaskView> {
  for await (const event of client.events(id, options.after ? { after: options.after } : {})) {
    if (options.json) process.stdout.write(`${JSON.stringify(event)}\n`)
    else {
      const line = describeEvent(event)
      if (line !== undefined) process.stdout.write(`${line}\n`)
    }
  }
  const task = await untilRecorded(client, id)
  process.stdout.write(options.json ? `${JSON.stringify({ type: 'task', ...task })}\n` : `${describeEnd(task)}\n`)
  return task
}

/** The last event is written just before the record: a moment may pass between them. */
async function untilRecorded(client: TasksClient, id: string): Promise<TaskView> {
  for (let attempt = 0; ; attempt++) {
    const task = await client.get(id)
    if (task.times?.finished_at || attempt > 200) return task
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

export function taskRequest(prompt: string, options: TaskOptions): CreateTaskRequest {
  const agent = agentChoice(options)
  const request = {
    repo: absoluteRepo(options.repo ?? '.'),
    task: prompt,
    ...(agent ? { agent } : {}),
    ...(options.branch ? { new_branch: options.branch } : {}),
    ...(options.base ? { base_branch: options.base } : {}),
    ...(options.timeout ? { timeout_seconds: options.timeout } : {}),
    ...(options.setup ? { setup: options.setup } : {}),
    ...(options.allow ? { egress: options.allow } : {}),
    ...(options.pool || options.template
      ? {
          sandbox: {
            ...(options.pool ? { pool: options.pool } : {}),
            ...(options.template ? { template: options.template } : {}),
          },
        }
      : {}),
    ...(options.keep ? { keep_sandbox: true } : {}),
  }
  const checked = createTaskRequestSchema.safeParse(request)
  if (checked.success) return checked.data
  const problem = checked.error.issues[0]
  throw new CliError(`${problem?.path.join('.')}: ${problem?.message}`, {
    exitCode: 2,
    hint: 'See `corral run --help`.',
  })
}

function agentChoice(options: TaskOptions): AgentChoice | undefined {
  const name = options.agent ?? (options.command ? 'command' : undefined)
  if (name === undefined) return undefined
  if (name === 'command') {
    if (!options.command) throw new CliError('the command agent needs --command', { exitCode: 2 })
    return { name: 'command', command: options.command }
  }
  if (options.command) throw new CliError(`--command goes with --agent command, not with ${name}`, { exitCode: 2 })
  return { name: name as 'claude', ...(options.model ? { model: options.model } : {}) }
}

/** A path is made absolute here: the platform has another working directory. */
function absoluteRepo(repo: string): string {
  const isAddress = /^[a-z][a-z0-9+.-]*:\/\//i.test(repo) || (/^[\w.-]+@[\w.-]+:/.test(repo) && !existsSync(repo))
  return isAddress ? repo : resolve(repo)
}
