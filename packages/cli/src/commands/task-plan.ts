import type { TasksClient, TaskView } from '@corral/protocol'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { requirePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { parseCount } from '../output/parse-duration.js'
import { terminalText } from '../output/terminal-text.js'
import { type CommonOptions, examples, print, withPlatform } from './common.js'
import { readPrompt } from './task-inputs.js'

interface DecisionOptions extends CommonOptions {
  revision?: number
  planFile?: string
}

/** `corral task plan|approve|revise|reject`: what becomes of a plan. */
export function addTaskPlan(task: Command): void {
  withPlatform(task.command('plan').argument('<id>'))
    .summary('the plan of a task that plans first')
    .description('Prints the plan, and on standard error its revision and what was decided about it.')
    .addHelpText('after', examples('corral task plan ID', 'corral task plan ID > plan.md'))
    .action(async (id: string, options: CommonOptions) => {
      const view = await (await connect(options)).get(id)
      const plan = planOf(view)
      if (!options.json) process.stderr.write(`${planLine(view)}\n`)
      print(plan, options, ({ text }) => (process.stdout.isTTY ? terminalText(text) : text))
    })

  decision(task, 'approve')
    .argument('[remark]', 'what the agent is told with it; - reads it from standard input')
    .option('--plan-file <file>', 'the plan as it shall be carried out, where you changed it; - is standard input')
    .summary('let the agent carry out its plan')
    .addHelpText(
      'after',
      examples(
        'corral task approve ID',
        'corral task approve ID "But leave the tests alone"',
        'corral task approve ID --plan-file plan.md',
      ),
    )
    .action(async (id: string, remark: string | undefined, options: DecisionOptions) => {
      const plan = options.planFile === undefined ? undefined : await readPrompt(undefined, options.planFile)
      const said = remark === undefined ? undefined : await readPrompt(remark, undefined)
      const client = await connect(options)
      const view = await client.approve(id, {
        revision: await revisionOf(client, id, options),
        ...(plan ? { plan } : {}),
        ...(said ? { remark: said } : {}),
      })
      print(view, options, () => `${id}: the plan is approved; follow it with \`corral task watch ${id}\``)
    })

  decision(task, 'revise')
    .argument('<remark>', 'what to change; - reads it from standard input')
    .summary('let the agent plan again')
    .addHelpText('after', examples('corral task revise ID "Do it without a new dependency"'))
    .action(async (id: string, remark: string, options: DecisionOptions) => {
      const said = await readPrompt(remark, undefined)
      const client = await connect(options)
      const view = await client.revise(id, { revision: await revisionOf(client, id, options), remark: said })
      print(view, options, () => `${id}: the agent plans again`)
    })

  decision(task, 'reject')
    .argument('[remark]', 'why; kept with the task')
    .summary('end the task instead of carrying out its plan')
    .addHelpText('after', examples('corral task reject ID "Not worth it"'))
    .action(async (id: string, remark: string | undefined, options: DecisionOptions) => {
      const client = await connect(options)
      const view = await client.reject(id, {
        revision: await revisionOf(client, id, options),
        ...(remark ? { remark } : {}),
      })
      print(view, options, () => `${id}: the plan is rejected`)
    })
}

function decision(task: Command, name: string): Command {
  return withPlatform(task.command(name).argument('<id>')).option(
    '--revision <n>',
    'the revision you read; refused where the plan was revised since (default: the one it has now)',
    parseCount,
  )
}

async function connect(options: CommonOptions): Promise<TasksClient> {
  return tasksClient(await requirePlatform(options))
}

/** Without a plan the platform says what is wrong; any revision leads there. */
async function revisionOf(client: TasksClient, id: string, { revision }: DecisionOptions): Promise<number> {
  return revision ?? (await client.get(id)).plan?.revision ?? 1
}

function planOf({ id, plan, status }: TaskView): NonNullable<TaskView['plan']> {
  if (plan) return plan
  throw new CliError(`task ${id} has no plan (${status})`, {
    exitCode: 1,
    hint: `Follow it with \`corral task watch ${id}\`.`,
  })
}

function planLine({ status, plan }: TaskView): string {
  const until = status === 'WAITING_APPROVAL' ? `, waits until ${plan?.expires_at}` : ''
  const verdict = plan?.verdict
    ? `, decided: ${plan.verdict}${plan.remark ? ` (${terminalText(plan.remark)})` : ''}`
    : ''
  return `revision ${plan?.revision}${until}${verdict}`
}
