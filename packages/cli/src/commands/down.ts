import { setTimeout as pause } from 'node:timers/promises'
import type { TasksClient, TaskView } from '@corral/protocol'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { activeTasks } from '../client/active-tasks.js'
import { answers } from '../client/answers.js'
import { ask } from '../client/ask-follow-up.js'
import { tasksClient } from '../client/tasks.js'
import { dataDirWords } from '../output/next-commands.js'
import { type DataDirectory, dataDirectoryOf, isLocked, readReady } from '../platform/data-directory.js'
import { dataDirOption, examples, say } from './common.js'

type Choice = 'wait' | 'leave' | 'cancel'

interface DownOptions {
  dataDir?: string
  wait?: boolean
  leave?: boolean
  cancel?: boolean
  json?: boolean
}

const lookEveryMs = 100
/** A platform stops within seconds; past this it hangs. */
const stopLimitMs = 5 * 60_000

/** `corral down`: ends the platform of a data directory, after saying what it would interrupt. */
export function addDownCommand(program: Command): void {
  dataDirOption(program.command('down'))
    .summary('end the platform')
    .description(
      'Ends the platform of the data directory. Where tasks run it asks what shall become of them; without a terminal one\nof --wait, --leave or --cancel says it. Nothing to end is a success.',
    )
    .option('--wait', 'let running tasks end first')
    .option('--leave', 'let them go on in their sandboxes; the next `corral up` continues with them')
    .option('--cancel', 'cancel them first; work done so far is kept')
    .option('--json', 'print JSON')
    .addHelpText('after', examples('corral down', 'corral down --wait', 'corral down --cancel'))
    .action(down)
}

async function down(options: DownOptions): Promise<void> {
  const flags = (['wait', 'leave', 'cancel'] as const).filter((flag) => options[flag])
  if (flags.length > 1) throw new CliError(`--${flags.join(' and --')} do not go together`, { exitCode: 2 })
  const directory = dataDirectoryOf(options)
  const tell = (result: object, text: string): void => {
    process.stdout.write(options.json ? `${JSON.stringify(result)}\n` : `${text}\n`)
  }
  const ready = readReady(directory)
  if (!(await isLocked(directory)))
    return tell({ stopped: false, tasks: [] }, `no platform of ${directory.path} is running`)
  if (!ready)
    throw new CliError(`a platform of ${directory.path} is starting or stopping`, {
      exitCode: 3,
      hint: 'Try again in a moment.',
    })
  const client = tasksClient(ready)
  // One that does not answer any more is ended as it is: its tasks are left to the next.
  const tasks = (await answers(ready.url)) ? await activeTasks(client) : []
  const choice = tasks.length === 0 ? 'leave' : (flags[0] ?? (await askWhatBecomesOf(tasks, options.dataDir)))
  if (choice === undefined) return tell({ stopped: false, tasks: ids(tasks) }, 'nothing was ended')
  if (choice !== 'leave') await settle(client, choice)
  const left = choice === 'leave' ? ids(tasks) : []
  await stop(directory, ready.pid)
  const up = `corral up${dataDirWords(options.dataDir)}`
  const goOn = left.length === 1 ? `goes on, \`${up}\` continues with it` : `go on, \`${up}\` continues with them`
  const rest = left.length === 0 ? '' : `; ${counted(left.length)} ${goOn}`
  tell({ stopped: true, pid: ready.pid, tasks: left }, `the platform has ended${rest}`)
}

const ids = (tasks: readonly TaskView[]): string[] => tasks.map(({ id }) => id)
const counted = (count: number): string => `${count} task${count === 1 ? '' : 's'}`

async function askWhatBecomesOf(tasks: readonly TaskView[], dataDir: string | undefined): Promise<Choice | undefined> {
  const list = tasks
    .slice(0, 10)
    .map(({ id, status, task }) => `  ${id}  ${status}  ${task.split('\n', 1)[0]?.slice(0, 60)}`)
  const more = tasks.length > 10 ? [`  and ${tasks.length - 10} more`] : []
  const text = [`${counted(tasks.length)} not ended:`, ...list, ...more].join('\n')
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new CliError(text, {
      exitCode: 2,
      hint: `Say what shall become of them: \`corral down --wait${dataDirWords(dataDir)}\`, \`--leave\` (they go on, the next start continues with them) or \`--cancel\`.`,
    })
  process.stderr.write(`${text}\n`)
  const question = 'wait for them, leave them running, cancel them, or do nothing? [w/l/c/N] '
  const answer = (await ask(question, process.stderr))?.trim() ?? ''
  return ({ w: 'wait', l: 'leave', c: 'cancel' } as const)[answer.slice(0, 1).toLowerCase()]
}

/** Requests under way at once: a queue of hundreds one after the other would take minutes on a busy machine. */
const cancelsAtOnce = 16

/** Until no task waits or runs; those that come meanwhile count too. */
async function settle(client: TasksClient, choice: 'wait' | 'cancel'): Promise<void> {
  const cancelled = new Set<string>()
  let toldCount = -1
  for (let tasks = await activeTasks(client); tasks.length > 0; tasks = await activeTasks(client)) {
    if (tasks.length !== toldCount) say(`waiting for ${counted(tasks.length)}`)
    toldCount = tasks.length
    const fresh = choice === 'cancel' ? tasks.flatMap(({ id }) => (cancelled.has(id) ? [] : [id])) : []
    for (let from = 0; from < fresh.length; from += cancelsAtOnce) {
      const some = fresh.slice(from, from + cancelsAtOnce)
      await Promise.all(some.map((id) => cancel(client, id)))
      for (const id of some) cancelled.add(id)
    }
    await pause(lookEveryMs)
  }
}

/** One that has ended by itself meanwhile is done. */
async function cancel(client: TasksClient, id: string): Promise<void> {
  await client.cancel(id).catch((error: { code?: string }) => {
    if (error.code !== 'TaskFinished') throw error
  })
}

async function stop(directory: DataDirectory, pid: number): Promise<void> {
  try {
    process.kill(pid, 'SIGTERM')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EPERM')
      throw new CliError(`process ${pid}, which runs the platform, belongs to another user`, {
        exitCode: 3,
        hint: 'End it as that user.',
        cause: error,
      })
  }
  const deadline = Date.now() + stopLimitMs
  while (isAlive(pid) || (await isLocked(directory))) {
    if (Date.now() > deadline)
      throw new CliError(`process ${pid} does not end`, {
        exitCode: 3,
        hint: `End it with \`kill -9 ${pid}\`; tasks and records survive that.`,
      })
    await pause(lookEveryMs)
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
