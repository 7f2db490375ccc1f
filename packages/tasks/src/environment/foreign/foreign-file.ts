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

/** `cd` for one command, so that the next one starts at the root again. */
export function inDirectory(directory: string | undefined, command: string): string {
  return directory === undefined || directory === '.' ? command : `(cd -- ${quoted(directory)}\n${command}\n)`
}
