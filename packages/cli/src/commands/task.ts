import type { TaskView } from '@corral/protocol'
import type { Command } from 'commander'
import { requirePlatform } from '../client/find-platform.js'
import { TasksClient } from '../client/tasks-client.js'
import { describeEnd, exitCodeOf } from '../output/event-printer.js'
import { parseCount } from '../output/parse-duration.js'
import { terminalText } from '../output/terminal-text.js'
import { age, type CommonOptions, print, table, withPlatform } from './common.js'
import { followTask, type TaskOptions, taskRequest, withTask } from './run.js'

export function addTaskCommand(program: Command): Command {
  const task = program
    .command('task')
    .summary('create, watch and steer tasks')
    .description('Tasks of a running platform.')

  withTask(task.command('create').argument('<prompt>'))
    .summary('submit a task and return at once')
    .option('--idempotency-key <key>', 'a repeat with the same key answers the first task')
    .action(async (prompt: string, options: TaskOptions & { idempotencyKey?: string }) => {
      const client = await connect(options)
      const created = await client.create(
        taskRequest(prompt, options),
        options.idempotencyKey ? { idempotencyKey: options.idempotencyKey } : {},
      )
      print(created, options, ({ id, status }) => `${id}  ${status}`)
    })

  withPlatform(task.command('list'))
    .alias('ls')
    .summary('tasks, newest first')
    .option('--status <phase>', 'only these: QUEUED, PROVISIONING, RUNNING, SUCCEEDED, FAILED, TIMED_OUT, CANCELLED')
    .option('--limit <n>', 'at most this many', parseCount)
    .action(async (options: CommonOptions & { status?: string; limit?: number }) => {
      const client = await connect(options)
      const page = await client.list({
        ...(options.status ? { status: options.status } : {}),
        ...(options.limit ? { limit: options.limit } : {}),
      })
      print(page, options, ({ tasks }) => (tasks.length === 0 ? 'no tasks' : taskTable(tasks)))
    })

  withPlatform(task.command('get').argument('<id>'))
    .summary('one task')
    .action(async (id: string, options: CommonOptions) => {
      print(await (await connect(options)).get(id), options, taskText)
    })

  withPlatform(task.command('watch').argument('<id>'))
    .summary('follow a task to its end')
    .description(
      'Shows the events of a task from the first, live, and ends as it ends. Exit codes as for `corral run`.',
    )
    .option('--after <sequence>', 'begin after this event', parseCount)
    .action(async (id: string, options: CommonOptions & { after?: number }) => {
      const ended = await followTask(await connect(options), id, options)
      process.exitCode = exitCodeOf(ended)
    })

  for (const what of ['logs', 'diff'] as const)
    withPlatform(task.command(what).argument('<id>'))
      .summary(what === 'logs' ? 'what the agent wrote' : 'the change as a patch')
      .action(async (id: string, options: CommonOptions) => {
        const client = await connect(options)
        const chunks: Uint8Array[] = []
        const decoder = new TextDecoder()
        for await (const chunk of client.text(id, what)) {
          if (options.json) chunks.push(chunk)
          else
            process.stdout.write(process.stdout.isTTY ? terminalText(decoder.decode(chunk, { stream: true })) : chunk)
        }
        if (options.json) print({ id, [what]: Buffer.concat(chunks).toString('utf8') }, options, () => '')
      })

  withPlatform(task.command('cancel').argument('<id>'))
    .summary('stop a task; work done so far is kept')
    .action(async (id: string, options: CommonOptions) => {
      print(await (await connect(options)).cancel(id), options, (view) => `${view.id} is being cancelled`)
    })

  withPlatform(task.command('retry').argument('<id>'))
    .summary('run an ended task again, as a new one')
    .action(async (id: string, options: CommonOptions) => {
      print(await (await connect(options)).retry(id), options, (created) => `${created.id}  ${created.status}`)
    })
  return task
}

async function connect(options: CommonOptions): Promise<TasksClient> {
  return new TasksClient(await requirePlatform(options))
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
    ['repo', task.repo],
    ['agent', task.agent.name],
    ['base', task.base_commit ? `${task.base_branch} (${task.base_commit.slice(0, 12)})` : task.base_branch],
    ['branch', task.branch],
    ['sandbox', task.sandbox?.name],
    ['isolation', task.sandbox?.isolation],
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
