import { type Command, Option } from 'commander'
import { CliError } from '../cli-error.js'
import type { FindOptions } from '../client/find-platform.js'
import { parseBytes } from '../output/parse-duration.js'
import { terminalText } from '../output/terminal-text.js'

export interface CommonOptions extends FindOptions {
  json?: boolean
}

export function dataDirOption(command: Command): Command {
  return command.option(
    '--data-dir <dir>',
    'data directory of the platform (default: ~/.corral, for root /var/lib/corral)',
  )
}

/** What the package mirror of a node may keep. */
export function packageCacheOption(): Option {
  return new Option('--package-cache <size>', 'disk the package mirror may use, such as 500M or 20G')
    .argParser(parseBytes)
    .default(10_000_000_000, '10G')
}

/** What environments of a node may keep. */
export function snapshotBudgetOption(): Option {
  return new Option(
    '--snapshot-budget <size>',
    'disk that built environments may use, such as 5G; beyond it the least used go',
  )
    .argParser(parseBytes)
    .default(50_000_000_000, '50G')
}

/** The last part of a command's help: lines to paste. */
export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}\n`).join('')}`
}

/** The options every command that talks to a platform has. */
export function withPlatform(command: Command): Command {
  return dataDirOption(command)
    .option('--url <url>', 'address of a platform elsewhere (or CORRAL_URL)')
    .option('--token <token>', 'its token (or CORRAL_TOKEN)')
    .option('--json', 'print JSON')
}

/** Prints one JSON document, or what `text` makes of it for people. */
export function print<T>(value: T, options: { json?: boolean }, text: (value: T) => string): void {
  process.stdout.write(options.json ? `${JSON.stringify(value, null, 2)}\n` : `${text(value)}\n`)
}

/** For the user, beside the output: on standard error. */
export function say(text: string): void {
  process.stderr.write(`corral: ${text}\n`)
}

/** Narrowest a column is cut to. */
const narrow = 6

/** Without line breaks and tabs: a name, label or message from a task must not move the cells after it. */
const cellText = (text: string): string => terminalText(text, false).replace(/[\n\t\u2028\u2029]+/g, ' ')

/** Columns side by side. On a terminal the widest are cut until a row fits; the first, which names the thing, never is. */
export function table(
  header: readonly string[],
  contents: readonly (readonly string[])[],
  columns: number | undefined = process.stdout.isTTY ? process.stdout.columns : undefined,
): string {
  const rows = contents.map((row) => row.map(cellText))
  const widths = header.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const total = (): number => widths.reduce((sum, width) => sum + width, 2 * (widths.length - 1))
  while (columns !== undefined && total() > columns) {
    const widest = Math.max(...widths.slice(1))
    if (widest <= narrow) break
    widths[widths.indexOf(widest, 1)] = widest - 1
  }
  const cut = (cell: string, width: number): string => (cell.length > width ? `${cell.slice(0, width - 1)}…` : cell)
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cut(cell, widths[column] ?? 0).padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [line(header), ...rows.map(line)].join('\n')
}

export function age(time: string, now: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000))
  if (seconds < 120) return `${seconds}s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`
}

/**
 * Resolves with the name of the first stop signal; a second one ends the process as soon as `beforeExit` has settled, a
 * third one at once.
 */
export function untilStopSignal(beforeExit: () => Promise<void> = () => Promise.resolve()): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let count = 0
    const on = (signal: NodeJS.Signals): void => {
      count += 1
      if (count > 2) process.exit(130)
      if (count === 2) void beforeExit().finally(() => process.exit(130))
      resolve(signal)
    }
    process.on('SIGINT', on)
    process.on('SIGTERM', on)
  })
}

export function readStdin(): Promise<string> {
  if (process.stdin.isTTY) throw new CliError('nothing was given on standard input', { exitCode: 2 })
  return new Promise((resolve, reject) => {
    let text = ''
    process.stdin.setEncoding('utf8')
    process.stdin.on('data', (chunk: string) => {
      text += chunk
    })
    process.stdin.once('end', () => resolve(text))
    process.stdin.once('error', reject)
  })
}
