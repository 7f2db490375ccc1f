import { defaultAgentName } from '@corral/agents'
import { CorralError, finalViewOf, isFinalPhase, type TasksClient, type TaskView } from '@corral/protocol'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { askFollowUp, offersFollowUp } from '../client/ask-follow-up.js'
import { askAboutPlan } from '../client/ask-plan.js'
import { askQuestion, waitingQuestion } from '../client/ask-question.js'
import { ensurePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { describeEnd, exitCodeOf } from '../output/event-printer.js'
import { liveEvents } from '../output/live-events.js'
import { nextCommands } from '../output/next-commands.js'
import { shellQuote } from '../output/shell-quote.js'
import { examples, say } from './common.js'
import { followAttempts } from './task-attempts.js'
import { readTaskRequest, type TaskOptions, withTask } from './task-request.js'

export function addRunCommand(program: Command): void {
  withTask(program.command('run').argument('[prompt]', 'what the agent shall do; - reads it from standard input'))
    .option('--once', 'end with the task; on a terminal a follow-up is asked for otherwise')
    .summary('run an agent on a repository and wait for the branch')
    .description(
      'Submits a task, shows what happens, and ends with the branch; with --json one event a line. Starts a platform when none is running.',
    )
    .addHelpText(
      'after',
      `${examples(
        'corral run "Say hello" --command \'echo "$CORRAL_PROMPT" >> NOTES.md\'',
        'echo "Tidy up" | corral run - --command \'cat "$CORRAL_PROMPT_FILE" > PLAN.md\'',
        'corral run "Use the settings" --file README.md:notes/readme.md --command \'cp notes/readme.md COPY.md\'',
        'corral run "Three tries" --attempts 3 --branch tries --command \'date +%N > TRY.txt\'',
        'corral run "See my edits" --include-uncommitted --command \'git log --oneline -2 > LOG.txt\'',
      )}
With an agent that is installed and has a key (\`corral --help\` shows how):
  corral run "Fix the failing test" --repo ~/src/app --agent ${defaultAgentName}
  corral run "Update the lock file" --agent ${defaultAgentName} --allow packages.example.com:443

Exit codes: 0 succeeded, 1 failed, 2 wrong usage, 3 platform trouble, 4 timed out, 5 cancelled.
`,
    )
    .action(run)
}

async function run(prompt: string | undefined, options: TaskOptions & { once?: boolean }): Promise<void> {
  const request = await readTaskRequest(prompt, options, say)
  const platform = await ensurePlatform(options, say)
  const client = tasksClient(platform)
  const ci = process.env.CI
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY
  const created = await client.create(request)
  if (created.group && created.tasks) {
    process.exitCode = await followAttempts(client, { group: created.group, tasks: created.tasks }, options)
    return
  }
  let { id } = created
  for (;;) {
    const task = await runToEnd(client, id, options)
    process.exitCode = exitCodeOf(task)
    if (!offersFollowUp(task, { isTerminal, json: options.json, once: options.once, ci })) return
    const message = await askFollowUp()
    if (message === undefined) return
    const sent = await client.send(id, { task: message })
    if ('delivery' in sent) return say(`${sent.delivery}: it becomes a follow-up when task ${id} has ended`)
    id = sent.id
  }
}

/** Shows a task to its end; an interrupt cancels it. */
async function runToEnd(client: TasksClient, id: string, options: TaskOptions): Promise<TaskView> {
  if (!options.json) process.stdout.write(`task ${id}\n`)
  let interrupts = 0
  const onInterrupt = (): void => {
    interrupts += 1
    if (interrupts > 1) process.exit(130)
    process.stderr.write('cancelling; what was done so far is kept (again to leave at once)\n')
    client.cancel(id).catch(() => process.exit(130))
  }
  process.on('SIGINT', onInterrupt)
  try {
    return await followTask(client, id, options)
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}

/** Shows a task's events to its end and answers how it ended. */
export async function followTask(
  client: TasksClient,
  id: string,
  options: { json?: boolean; after?: number; dataDir?: string | undefined },
): Promise<TaskView> {
  const task = await untilEnded(client, id, options).catch((error: unknown) => {
    throw lostFrom(error, id, options.dataDir)
  })
  if (options.json) process.stdout.write(`${JSON.stringify({ type: 'task', ...task })}\n`)
  else process.stdout.write(`${[describeEnd(task), ...nextCommands(task, options.dataDir)].join('\n')}\n`)
  return task
}

async function untilEnded(
  client: TasksClient,
  id: string,
  options: { json?: boolean; after?: number; dataDir?: string | undefined },
): Promise<TaskView> {
  let ended: TaskView | undefined
  const live = liveEvents()
  const onLost = (): void => say('the platform does not answer; waiting for it to come back')
  for await (const event of client.events(id, { ...(options.after ? { after: options.after } : {}), onLost })) {
    ended = finalViewOf(event)
    if (options.json) process.stdout.write(`${JSON.stringify(event)}\n`)
    else for (const line of live.push(event)) process.stdout.write(`${line}\n`)
    if (event.type === 'plan') await onPlan(client, id, event.revision, options)
    if (event.type === 'question') await onQuestion(client, id, event.question, options)
  }
  return ended ?? client.get(id)
}

/** A plan that waits: asked about on a terminal, pointed to elsewhere. One that was decided meanwhile goes on. */
async function onPlan(
  client: TasksClient,
  id: string,
  revision: number,
  options: { json?: boolean; dataDir?: string | undefined },
): Promise<void> {
  const { status, plan } = await client.get(id)
  if (isFinalPhase(status) || plan?.revision !== revision || plan.verdict) return
  if (!options.json && process.stdin.isTTY && process.stdout.isTTY) return askAboutPlan(client, id, revision)
  say(
    `the task waits for you: \`corral task approve ${id}\`, \`corral task revise ${id} "..."\` or \`corral task reject ${id}\``,
  )
}

/** A question that waits: asked on a terminal, pointed to elsewhere. */
async function onQuestion(
  client: TasksClient,
  id: string,
  name: string,
  options: { json?: boolean; dataDir?: string | undefined },
): Promise<void> {
  const question = await waitingQuestion(client, id, name)
  if (!question) return
  if (!options.json && process.stdin.isTTY && process.stdout.isTTY) return askQuestion(client, id, question)
  say(`the task waits for you: \`corral task answer ${id} --question ${name}\``)
}

/** A platform that went away takes nothing of the task along: says how to find it again. */
function lostFrom(error: unknown, id: string, dataDir: string | undefined): unknown {
  if (!(error instanceof CorralError) || error.code !== 'ConnectionLost') return error
  return new CliError(`the platform went away; task ${id} is kept and goes on in its sandbox`, {
    exitCode: 3,
    hint: dataDir === undefined ? usualHint(id) : hintFor(id, shellQuote(dataDir)),
    cause: error,
  })
}

const usualHint = (id: string): string =>
  `Start the platform again with \`corral up -d\`, then follow the task with \`corral task watch ${id}\`.`
const hintFor = (id: string, dir: string): string =>
  `Start the platform again with \`corral up -d --data-dir ${dir}\`, then follow the task with \`corral task watch ${id} --data-dir ${dir}\`.`
