import type { Command } from 'commander'
import { requirePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { exitCodeOf } from '../output/event-printer.js'
import { type CommonOptions, examples, print, withPlatform } from './common.js'
import { followTask } from './run.js'
import { readPrompt } from './task-inputs.js'

interface SendOptions extends CommonOptions {
  promptFile?: string
  branch?: string
  watch?: boolean
}

const ofRunning =
  'To a task whose agent runs: the message is given to the agent where it can take it (`steer` in docs/agents.md).'
const ofUnread = 'Where it cannot, or ends before it has read it, the message becomes a follow-up at its end.'
const ofEnded =
  "To an ended task: makes a follow-up, a task of its own on the same branch, from the former's commits, in the same environment, with the agent's session resumed."
const ofSecond = 'A second one to the same task gets a branch of its own. The former task stays as it is.'

/** `corral task send`: the next thing to say in a conversation. */
export function addTaskSend(task: Command): void {
  withPlatform(task.command('send').argument('<id>').argument('[message]', '- reads it from standard input'))
    .summary('say the next thing: to the agent as it runs, or as a follow-up of an ended task')
    .description(
      `${ofRunning} ${ofUnread}

${ofEnded} ${ofSecond}`,
    )
    .option('--prompt-file <file>', 'read the message from a file; - is standard input')
    .option('--branch <name>', 'put the work on this branch instead')
    .option('--watch', 'follow the new task to its end, as `corral run` does')
    .addHelpText('after', examples('corral task send ID "Now add a test for it"', 'corral task send ID - --watch'))
    .action(async (id: string, argument: string | undefined, options: SendOptions) => {
      const message = await readPrompt(argument, options.promptFile)
      const client = tasksClient(await requirePlatform(options))
      const created = await client.send(id, {
        task: message,
        ...(options.branch ? { new_branch: options.branch } : {}),
      })
      if ('delivery' in created) {
        print(created, options, ({ delivery }) =>
          delivery === 'steered'
            ? `steered: the agent of ${id} is told`
            : `queued: becomes a follow-up when ${id} has ended`,
        )
        return
      }
      if (!options.watch) return print(created, options, ({ id: next, status }) => `${next}  ${status}`)
      if (!options.json) process.stdout.write(`task ${created.id}\n`)
      process.exitCode = exitCodeOf(await followTask(client, created.id, options))
    })
}
