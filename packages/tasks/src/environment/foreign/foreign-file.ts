import type { ToolName } from '@corral/protocol'

/** What a file of another tool says about setting a repository up, as far as it is understood here. */
export interface ForeignSetup {
  setup: string[]
  env: Record<string, string>
  tools: Partial<Record<ToolName, string>>
  /** Background commands. */
  start: string[]
  /** Parts of the file that mean something there and nothing here, in words. */
  leftOut: string[]
}

/** The file cannot be used: `problem` names the place in it. */
export class ForeignFileProblem extends Error {
  override readonly name: string = 'ForeignFileProblem'
}

export const nothing = (): ForeignSetup => ({ setup: [], env: {}, tools: {}, start: [], leftOut: [] })

export type Fields = Readonly<Record<string, unknown>>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const quoted = (text: string): string =>
  /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

export function shellWords(words: readonly unknown[]): string {
  return words.map((word) => quoted(String(word))).join(' ')
}

/** `cd` first, where it is not the root. */
export function inDirectory(directory: string | undefined, command: string): string {
  return directory === undefined || directory === '.' ? command : `cd -- ${quoted(directory)}\n${command}`
}

/**
 * One script of commands that each had a shell of their own there: a `cd`, an `export` or an `exit 0` of one is no matter of the
 * next.
 */
export function inOwnShells(commands: readonly string[]): string {
  return commands.length === 1 ? (commands[0] ?? '') : commands.map((command) => `(\n${command}\n)`).join('\n')
}
