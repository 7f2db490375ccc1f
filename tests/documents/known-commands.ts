import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseManagerOptions } from '@corral/controllers'
import { buildProgram } from '../../packages/cli/src/program.js'

type Command = ReturnType<typeof buildProgram>

/** Commands of npm itself that need no script. */
const npmOwn = new Set(['ci', 'install', 'test', 'exec', 'pack', 'publish'])

/**
 * What is wrong with a command line, or `undefined`: whether its program, commands, options and their values exist. One
 * that is `whole` has all its arguments too; inside a sentence `corral run` may stand for the command itself.
 */
export function problemOf(words: readonly string[], root: string, { whole }: { whole: boolean }): string | undefined {
  const [program = '', ...rest] = words.filter((word, index) => index > 0 || word !== '')
  if (/^[A-Z_]+=/.test(program)) return problemOf(rest, root, { whole })
  if (program === 'corral' || program.endsWith('/corral')) return problemOfCorral(rest, whole)
  if (program === 'npm') return problemOfNpm(rest, root)
  // With --yes it is fetched, in a sandbox that has the package mirror.
  if (program === 'npx' && rest[0] !== '--yes')
    return existsSync(join(root, 'node_modules/.bin', rest[0] ?? '')) ? undefined : 'is not installed'
  if (program.endsWith('/vitest'))
    return rest
      .slice(1)
      .find((word) => word.includes('/') && !existsSync(join(root, word)))
      ?.concat(' does not exist')
  if (program === 'kubectl')
    return rest
      .find(
        (word, index) =>
          /^(-f|--filename|--patch-file)$/.test(rest[index - 1] ?? '') && word !== '-' && !existsSync(join(root, word)),
      )
      ?.concat(' does not exist')
  return undefined
}

function problemOfCorral(words: readonly string[], whole: boolean): string | undefined {
  let command: Command = buildProgram()
  let rest = [...words]
  if (rest[0] === 'help') return undefined
  while (rest[0] !== undefined && !rest[0].startsWith('-') && command.commands.length > 0) {
    const name = rest[0]
    const next = command.commands.find((each) => each.name() === name || each.aliases().includes(name))
    if (!next) return `there is no command "${name}"`
    command = next
    rest = rest.slice(1)
  }
  if (rest.some((word) => /^(--help|-h|--version|-V)$/.test(word))) return undefined
  if (command.name() === 'controller') {
    const parsed = parseManagerOptions(
      whole ? rest : rest.filter((word) => !word.startsWith('-') || word.includes('=')),
    )
    return 'error' in parsed ? parsed.error : undefined
  }
  try {
    for (let above = command.parent; above; above = above.parent) {
      const end = rest.includes('--') ? rest.indexOf('--') : rest.length
      const { operands: words, unknown: others } = quiet(above).parseOptions(rest.slice(0, end))
      rest = [...words, ...others, ...rest.slice(end)]
    }
    const { operands, unknown } = quiet(command).parseOptions(rest)
    if (unknown.length > 0) return `there is no option ${unknown[0]}`
    const [missing] = command.registeredArguments.filter(({ required }) => required).slice(operands.length)
    if (whole && missing) return `needs <${missing.name()}>`
    const takesAll = command.registeredArguments.some(({ variadic }) => variadic)
    if (!takesAll && operands.length > command.registeredArguments.length) return `takes no "${operands.at(-1)}"`
    return whole && command.commands.length > 0 && !hasAction(command) ? 'names no command' : undefined
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    if (!code?.startsWith('commander.')) throw error
    return !whole && code === 'commander.optionMissingArgument' ? undefined : message
  }
}

/** Commander has no public way to ask whether a command with commands of its own also does something. */
function hasAction(command: Command): boolean {
  return (command as unknown as { _actionHandler?: unknown })._actionHandler != null
}

function quiet(command: Command): Command {
  return command.exitOverride().configureOutput({ writeErr: () => undefined, writeOut: () => undefined })
}

function problemOfNpm([verb = '', name = '']: readonly string[], root: string): string | undefined {
  if (verb !== 'run' && verb !== '--silent') return npmOwn.has(verb) || verb === '' ? undefined : `npm has no ${verb}`
  return scriptsOf(root).has(name) ? undefined : `package.json has no script "${name}"`
}

export function scriptsOf(root: string): Set<string> {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
  return new Set(Object.keys(scripts))
}

/** The words of code inside a sentence; `a|b` stands for either, `<id>` and `…` for anything. */
export function wordsOfMention(text: string): string[][] {
  const words = (text.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map((word) => word.replace(/^(["'])(.*)\1$/, '$2'))
  const choice = words.findIndex((word) => /^[\w-]+(\|[\w-]+)+$/.test(word))
  if (choice < 0) return [words.filter((word) => word !== '…' && word !== '...')]
  return (words[choice] ?? '').split('|').map((each) => words.with(choice, each))
}
