import type { CreateTaskRequest } from '@corral/protocol'
import { InvalidArgumentError } from 'commander'

/** A number that may be 0: then a failed check ends the task at once. */
export function parseRounds(text: string): number {
  const rounds = Number(text)
  if (!/^\d{1,2}$/.test(text) || rounds > 10) throw new InvalidArgumentError('Give a number from 0 to 10.')
  return rounds
}

/** The checks that `--check` and its companions stand for. */
export function checksRequest(options: {
  check?: string[]
  checkTimeout?: number
  checkRounds?: number
  pushFailed?: boolean
}): Pick<CreateTaskRequest, 'checks' | 'check_rounds' | 'on_failed_checks'> {
  const { check = [], checkTimeout } = options
  const timeout = checkTimeout ? { timeout_seconds: checkTimeout } : {}
  const taken = new Set<string>()
  const checks = check.map((text) => ({ ...namedCheck(text, taken), ...timeout }))
  return {
    ...(checks.length > 0 ? { checks } : {}),
    ...(options.checkRounds === undefined ? {} : { check_rounds: options.checkRounds }),
    ...(options.pushFailed === false ? { on_failed_checks: 'no-push' as const } : {}),
  }
}

/** `test=npm test`, or a command that gets a name from its words: `npm-test`, the second one `npm-test-2`. */
export function namedCheck(text: string, taken: Set<string>): { name: string; command: string } {
  // A command may begin with a variable of its own (`CI=1 npm test`): only a word in lower case names the check.
  const given = /^([a-z][a-z0-9._-]*[a-z0-9]|[a-z])=(.+)$/s.exec(text)
  const command = given?.[2] ?? text
  const wanted = given?.[1] ?? nameFrom(command)
  let name = wanted
  if (given === null) for (let number = 2; taken.has(name); number++) name = `${wanted}-${number}`
  taken.add(name)
  return { name, command }
}

function nameFrom(command: string): string {
  const words = command
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
  return words.slice(0, 30).replace(/-+$/, '') || 'check'
}
