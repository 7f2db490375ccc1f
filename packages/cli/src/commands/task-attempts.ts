import type { GroupView, TasksClient } from '@corral/protocol'
import { isFinalPhase } from '@corral/protocol'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { requirePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { compareText } from '../output/compare-text.js'
import { exitCodeOf } from '../output/event-printer.js'
import { type CommonOptions, examples, print, withPlatform } from './common.js'

/** `corral task compare|pick|release`: several attempts, and sandboxes that are held. */
export function addTaskAttempts(task: Command): void {
  withPlatform(task.command('compare').argument('<group>', 'name of the group, or the id of one of its tasks'))
    .summary('several attempts side by side')
    .description(
      `Shows how each attempt of \`corral run --attempts\` ended: checks, size of the change, cost, time of the agent and
branch. * marks the one that was picked.`,
    )
    .addHelpText('after', examples('corral task compare ID', 'corral task compare ID --json'))
    .action(async (name: string, options: CommonOptions) => {
      const client = tasksClient(await requirePlatform(options))
      const group = await client.group(await groupNameOf(client, name))
      print(group, options, () => compareText(group, options.dataDir))
    })

  withPlatform(task.command('pick').argument('<id>'))
    .summary('give an attempt the branch that was asked for')
    .description(
      `Pushes the commit of this attempt to the branch the attempts were to go to. No agent runs. The same again is a success;
another one is refused, unless --force: then the branch is moved, as long as it has no commits of others.`,
    )
    .option('--force', 'also where another attempt has the branch')
    .addHelpText('after', examples('corral task pick ID', 'corral task pick ID --force'))
    .action(async (id: string, options: CommonOptions & { force?: boolean }) => {
      const client = tasksClient(await requirePlatform(options))
      const pushing = await client.pick(id, options.force ? { force: true } : {})
      const ended = await client.wait(pushing.id)
      process.exitCode = exitCodeOf(ended)
      if (ended.status !== 'SUCCEEDED' && !options.json)
        throw new CliError(`${id} could not be picked: ${ended.cause?.message ?? ended.status}`, {
          exitCode: exitCodeOf(ended),
          ...(ended.cause?.hint ? { hint: ended.cause.hint } : {}),
        })
      print(ended, options, ({ branch, commit = '' }) => `${branch} is at ${commit.slice(0, 12)} (${id})`)
    })

  withPlatform(task.command('release').argument('<id>'))
    .summary('let the sandbox go that an ended task holds')
    .description(
      `Ends the sandbox that \`--hold\` keeps for a follow-up, or \`--keep\` after a failure, before its time. The task stays as
it is; a follow-up begins in another sandbox.`,
    )
    .addHelpText('after', examples('corral task release ID'))
    .action(async (id: string, options: CommonOptions) => {
      const client = tasksClient(await requirePlatform(options))
      print(await client.release(id), options, () => `${id}: its sandbox is let go`)
    })
}

/** The group itself, or that of a task. */
async function groupNameOf(client: TasksClient, name: string): Promise<string> {
  if (!name.startsWith('task-')) return name
  const { group } = await client.get(name)
  if (group) return group.name
  throw new CliError(`task ${name} is not one of several attempts`, {
    exitCode: 2,
    hint: 'Make some with `corral run --attempts 3 "..."`.',
  })
}

/** Waits for all attempts, tells of each that ends, and shows them side by side. Answers the exit code. */
export async function followAttempts(
  client: TasksClient,
  { group, tasks }: { group: string; tasks: readonly string[] },
  options: CommonOptions,
): Promise<number> {
  if (!options.json) process.stdout.write(`attempts ${group}: ${tasks.join(' ')}\n`)
  await withInterrupt(client, tasks, () =>
    Promise.all(
      tasks.map(async (id, index) => {
        const { status, cause } = await client.wait(id)
        if (!options.json) process.stdout.write(`${index + 1}  ${id}  ${status}${cause ? ` ${cause.code}` : ''}\n`)
      }),
    ),
  )
  const view = await client.group(group)
  print(view, options, () => compareText(view, options.dataDir))
  return exitCodeOfAll(view)
}

/** One that succeeded is enough. */
function exitCodeOfAll({ tasks }: GroupView): number {
  return Math.min(...tasks.map((task) => exitCodeOf(task)))
}

/** An interrupt cancels all attempts that have not ended; a second one leaves at once. */
async function withInterrupt<T>(client: TasksClient, tasks: readonly string[], work: () => Promise<T>): Promise<T> {
  let interrupts = 0
  const onInterrupt = (): void => {
    interrupts += 1
    if (interrupts > 1) process.exit(130)
    process.stderr.write('cancelling all attempts; what was done so far is kept (again to leave at once)\n')
    for (const id of tasks)
      void client
        .get(id)
        .then(({ status }) => (isFinalPhase(status) ? undefined : client.cancel(id)))
        .catch(() => undefined)
  }
  process.on('SIGINT', onInterrupt)
  try {
    return await work()
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}
