import type { TaskQuestion, TasksClient } from '@corral/protocol'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { requirePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { parseCount } from '../output/parse-duration.js'
import { answerFrom, describeQuestion } from '../output/question-text.js'
import { type CommonOptions, examples, print, withPlatform } from './common.js'
import { readPrompt } from './task-inputs.js'

interface AnswerOptions extends CommonOptions {
  option?: number
  question?: string
}

/** `corral task answer`: shows what an agent asks, and answers it. */
export function addTaskAnswer(task: Command): void {
  withPlatform(task.command('answer').argument('<id>').argument('[answer]', 'in words; - reads it from standard input'))
    .summary('answer a question of the agent, or see what it asks')
    .description(
      `An agent that was told to ask (\`corral run --ask always\`) waits with its question, and its task is WAITING_INPUT. Without an
answer this prints what it asks.`,
    )
    .option('--option <n>', 'choose the option of this number', parseCount)
    .option('--question <id>', 'which question, where several wait (default: the one that waits)')
    .addHelpText(
      'after',
      examples(
        'corral task answer ID',
        'corral task answer ID --option 1',
        'corral task answer ID "Use the existing helper"',
      ),
    )
    .action(async (id: string, argument: string | undefined, options: AnswerOptions) => {
      const words = argument === undefined ? undefined : await readPrompt(argument, undefined)
      if (words !== undefined && options.option !== undefined)
        throw new CliError('give an answer or --option, not both', { exitCode: 2 })
      const client = tasksClient(await requirePlatform(options))
      if (words === undefined && options.option === undefined) return showQuestions(client, id, options)
      const question = await questionFor(client, id, options)
      const chosen = options.option === undefined ? answerFrom(words ?? '', []) : optionOf(question, options.option)
      const view = await client.answer(id, { question: question.id, ...(chosen ?? { answer: words ?? '' }) })
      print(view, options, () => `${id}: answered; follow it with \`corral task watch ${id}\``)
    })
}

async function showQuestions(client: TasksClient, id: string, options: CommonOptions): Promise<void> {
  const open = await openQuestions(client, id)
  print({ questions: open }, options, () =>
    open.length === 0
      ? `${id} asks nothing`
      : open.map((question) => describeQuestion({ ...question, question: question.id })).join('\n'),
  )
}

async function openQuestions(client: TasksClient, id: string): Promise<TaskQuestion[]> {
  return ((await client.get(id)).questions ?? []).filter(({ outcome }) => outcome === undefined)
}

/** The question that is meant. One that is named need not wait: the platform says what is wrong with it. */
async function questionFor(
  client: TasksClient,
  id: string,
  { question }: AnswerOptions,
): Promise<Pick<TaskQuestion, 'id' | 'options'>> {
  const { questions = [], status } = await client.get(id)
  if (question !== undefined) return questions.find((known) => known.id === question) ?? { id: question, options: [] }
  const open = questions.filter(({ outcome }) => outcome === undefined)
  if (open.length === 1 && open[0]) return open[0]
  throw new CliError(
    open.length === 0 ? `task ${id} asks nothing (${status})` : `task ${id} asks ${open.length} questions`,
    {
      exitCode: 1,
      hint:
        open.length === 0
          ? `Follow it with \`corral task watch ${id}\`.`
          : `Say which with --question: ${open.map((each) => each.id).join(', ')}.`,
    },
  )
}

function optionOf({ id, options }: Pick<TaskQuestion, 'id' | 'options'>, number: number): { option: string } {
  const chosen = options[number - 1]
  if (chosen) return { option: chosen.id }
  throw new CliError(`question ${id} has no option ${number}`, {
    exitCode: 2,
    hint: options.length === 0 ? 'It takes any words.' : `It has options 1 to ${options.length}.`,
  })
}
