import { clipText } from '@corral/protocol'

export interface FailedCheck {
  name: string
  command: string
  /** `exit code 1`, `no end within 600 s`. */
  how: string
  /** The end of what it wrote. */
  output: string
}

/** What an agent is told of one check's output, and of all of them. */
const outputCharacters = 8 * 1024
const commandCharacters = 1024

/** The message with which an agent is sent back. */
export function repairMessage(failed: readonly FailedCheck[]): string {
  const parts = failed.map(
    ({ name, command, how, output }) =>
      `Check "${name}" failed (${how}). Command:\n${clipText(command, commandCharacters)}\n\nThe end of its output:\n${lastCharacters(output) || '(it wrote nothing)'}`,
  )
  return `${failed.length === 1 ? 'A check' : 'Checks'} of your work failed. Repair the cause; do not weaken or skip the check.\n\n${parts.join('\n\n')}\n`
}

/** For an agent that does not remember: what was asked for, then what is wrong with the work that lies there. */
export function repairPrompt(prompt: string, message: string): string {
  return `${prompt}\n\nThe work on this was begun; the repository is as it was left. ${message}`
}

function lastCharacters(output: string): string {
  return output.length <= outputCharacters ? output : `…${output.slice(-outputCharacters)}`
}
