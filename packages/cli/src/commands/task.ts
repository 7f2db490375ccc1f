import { setTimeout as pause } from 'node:timers/promises'
import {
  type RetryStage,
  retryStages,
  type TaskPhase,
  type TasksClient,
  type TaskView,
  taskPhases,
} from '@corral/protocol'
import { type Command, InvalidArgumentError } from 'commander'
import { requirePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { checkWords } from '../output/check-text.js'
import { describeEnd, exitCodeOf } from '../output/event-printer.js'
import { parseCount, parseNumber } from '../output/parse-duration.js'
import { table } from '../output/table.js'
import { age, type CommonOptions, examples, print, say, withPlatform } from './common.js'
import { removeEach } from './remove-each.js'
import { followTask } from './run.js'
import { readTaskRequest, type TaskOptions, withTask } from './task-request.js'

export function addTaskCommand(program: Command): Command {
  const task = program
    .command('task')
    .summary('create, watch and steer tasks')
    .description('Tasks of a running platform. `corral run` makes one and waits for it.')
    .addHelpText(
      'after',
      examples(
        'corral task list',
        'corral task list --status failed --limit 5',
        'corral task watch ID      # follow it, as `corral run` does',
        'corral task diff ID       # the change, as a patch',
        'corral task send ID "Now add a test for it"   # go on: with the running agent, or as a follow-up',
        'corral task apply ID      # the change into your work tree, uncommitted',
        'corral task rm ID         # take it off the list, with its logs',
      ),
    )

  withTask(task.command('create').argument('[prompt]', 'what the agent shall do; - reads it from standard input'))
    .summary('submit a task and return at once')
    .option('--idempotency-key <key>', 'a repeat with the same key answers the first task')
    .addHelpText('after', examples('corral task create "Say hello" --command \'echo hello > HELLO.txt\''))
    .action(async (prompt: string | undefined, options: TaskOptions & { idempotencyKey?: string }) => {
      const client = await connect(options)
      const created = await client.create(
        await readTaskRequest(prompt, options, say),
        options.idempotencyKey ? { idempotencyKey: options.idempotencyKey } : {},
      )
      print(created, options, ({ id, status, group, tasks }) =>
        group ? `${group}\n${(tasks ?? []).join('\n')}` : `${id}  ${status}`,
      )
    })

  withPlatform(task.command('list'))
    .summary('tasks, newest first')
    .option('--status <phase>', `only these: ${taskPhases.join(', ')}`, parsePhase)
    .option('--group <name>', 'only attempts of this group')
    .option('--project <name>', 'only tasks of this project')
    .option('--limit <n>', 'at most this many', parseNumber)
    .action(
      async (options: CommonOptions & { status?: TaskPhase; group?: string; project?: string; limit?: number }) => {
        const client = await connect(options)
        const page = await client.list({
          ...(options.status ? { status: options.status } : {}),
          ...(options.group ? { group: options.group } : {}),
          ...(options.project ? { project: options.project } : {}),
          ...(options.limit ? { limit: options.limit } : {}),
        })
        print(page, options, ({ tasks }) => (tasks.length === 0 ? 'no tasks' : taskTable(tasks)))
      },
    )

  withPlatform(task.command('get').argument('<id>'))
    .summary('one task')
    .action(async (id: string, options: CommonOptions) => {
      print(await (await connect(options)).get(id), options, taskText)
    })

  withPlatform(task.command('watch').argument('<id>'))
    .summary('follow a task to its end')
    .description(
      'Shows the events of a task from the first, live, and ends as it ends; with --json one event a line. Exit codes as for `corral run`.',
    )
    .option('--after <sequence>', 'begin after this event', parseCount)
    .action(async (id: string, options: CommonOptions & { after?: number }) => {
      const ended = await followTask(await connect(options), id, options)
      process.exitCode = exitCodeOf(ended)
    })

  withPlatform(task.command('cancel').argument('<id>'))
    .summary('stop a task; work done so far is kept')
    .description('Ends the agent, keeps what it did so far on the branch, and ends the task as CANCELLED.')
    .action(async (id: string, options: CommonOptions) => {
      print(await (await connect(options)).cancel(id), options, (view) => `${view.id} is being cancelled`)
    })

  withPlatform(task.command('retry').argument('<id>'))
    .summary('run an ended task again, as a new one')
    .description(
      `Begins where the task failed, with what it kept: "push" pushes its commits, "agent" runs the agent again on the
same base, "start" begins anew. The task itself stays as it is.`,
    )
    .addHelpText('after', examples('corral task retry ID', 'corral task retry ID --from start --branch another'))
    .option('--from <stage>', `begin with ${retryStages.join(', ')} instead of the stage that failed`, parseRetryStage)
    .option('--branch <name>', 'put the work on this branch instead')
    .option('--keep-work', 'let the agent go on from what was saved of the former one’s work')
    .option('--no-keep-work', 'let the agent begin with the base, even where work of a former one was saved')
    .action(async (id: string, options: CommonOptions & RetryOptions) => {
      const created = await (await connect(options)).retry(id, {
        ...(options.from ? { from: options.from } : {}),
        ...(options.branch ? { new_branch: options.branch } : {}),
        ...(options.keepWork === undefined ? {} : { keep_work: options.keepWork }),
      })
      print(created, options, ({ id: next, status }) => `${next}  ${status}`)
    })

  withPlatform(task.command('rm').argument('<id...>'))
    .summary('take ended tasks away, with their logs')
    .description(
      'Deletes tasks and what the platform keeps of them: events, logs, diffs. Branches that were pushed stay. A task that\nhas not ended is refused; with --force it is cancelled first and its work pushed.',
    )
    .option('--force', 'cancel tasks that still run, then take them away')
    .addHelpText('after', examples('corral task rm ID', 'corral task rm --force ID'))
    .action(async (ids: string[], options: CommonOptions & { force?: boolean }) => {
      const client = await connect(options)
      await removeEach(ids, options, async (id) => {
        await client.remove(id, options.force ? { force: true } : {})
        await untilGone(client, id)
      })
    })
  return task
}

/** Deletion is recorded at once and carried out a moment later; for a task that runs, when its work is pushed. */
async function untilGone(client: TasksClient, id: string): Promise<void> {
  for (;;) {
    const isGone = await client.get(id).then(
      () => false,
      (error: { code?: string }) => {
        if (error.code === 'TaskNotFound') return true
        throw error
      },
    )
    if (isGone) return
    await pause(100)
  }
}

async function connect(options: CommonOptions): Promise<TasksClient> {
  return tasksClient(await requirePlatform(options))
}

interface RetryOptions {
  from?: RetryStage
  branch?: string
  keepWork?: boolean
}

function parseRetryStage(text: string): RetryStage {
  const stage = retryStages.find((known) => known === text)
  if (!stage) throw new InvalidArgumentError(`Use one of ${retryStages.join(', ')}.`)
  return stage
}

function parsePhase(text: string): TaskPhase {
  const phase = taskPhases.find((known) => known === text.toUpperCase())
  if (!phase) throw new InvalidArgumentError(`Use one of ${taskPhases.join(', ')}.`)
  return phase
}

function taskTable(tasks: readonly TaskView[]): string {
  const rows = tasks.map((task) => [
    task.id,
    task.status,
    task.agent.name,
    age(task.created_at),
    task.branch ?? '',
    firstLine(task.task),
  ])
  return table(['ID', 'STATUS', 'AGENT', 'AGE', 'BRANCH', 'TASK'], rows)
}

function taskText(task: TaskView): string {
  const rows: [string, string | undefined][] = [
    ['id', task.id],
    ['status', task.status],
    ['project', task.project],
    ['repo', task.repo],
    ['agent', task.agent.name],
    ['base', task.base_commit ? `${task.base_branch} (${task.base_commit.slice(0, 12)})` : task.base_branch],
    ['branch', task.branch ?? (task.new_branch ? `${task.new_branch} (not pushed)` : undefined)],
    ['waiting', task.waiting && `${task.waiting.reason}: ${task.waiting.message}`],
    ['checks', checkWords(task)],
    ['sandbox', task.sandbox?.name],
    ['held until', task.sandbox?.held_until],
    ['group', task.group && `${task.group.name} (attempt ${task.group.number} of ${task.group.size})`],
    ['isolation', task.sandbox?.isolation],
    ['provider', task.sandbox?.provider],
    ['egress', task.egress?.join(', ')],
    ['created', task.created_at],
    ['task', firstLine(task.task)],
  ]
  const known = rows.filter((row): row is [string, string] => row[1] !== undefined)
  const text = known.map(([name, value]) => `${name.padEnd(10)} ${value}`).join('\n')
  return task.times?.finished_at ? `${text}\n${describeEnd(task)}` : text
}

function firstLine(text: string): string {
  const line = text.split('\n', 1)[0] ?? ''
  return line.length > 60 ? `${line.slice(0, 59)}…` : line
}
