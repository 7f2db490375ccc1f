import type { TaskQuestion } from '@corral/protocol'
import { pc } from './colors.js'
import { terminalText } from './terminal-text.js'

type Asked = Pick<TaskQuestion, 'text' | 'options'> & { question: string; kind: TaskQuestion['kind'] }

/** A question with its options, numbered as `--option` counts them. */
export function describeQuestion({ question, text, kind, options }: Asked): string {
  const head = kind === 'permission' ? 'asks for permission' : 'asks'
  return [
    `${pc.cyan('?')} ${pc.bold(head)} ${pc.dim(question)}  ${terminalText(text)}`,
    ...options.map(({ label }, index) => `    ${index + 1}. ${terminalText(label)}`),
  ].join('\n')
}

/** What was typed, as the API takes it: the number of an option, or words. */
export function answerFrom(
  text: string,
  options: readonly { id: string }[],
): { option: string } | { answer: string } | undefined {
  const word = text.trim()
  if (word === '') return undefined
  const chosen = /^[0-9]{1,3}$/.test(word) ? options[Number(word) - 1] : undefined
  return chosen ? { option: chosen.id } : { answer: word }
}
