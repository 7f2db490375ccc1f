import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import type { FindOptions } from '../client/find-platform.js'

export interface CommonOptions extends FindOptions {
  json?: boolean
}

/** The options every command that talks to a platform has. */
export function withPlatform(command: Command): Command {
  return command
    .option('--data-dir <dir>', 'data directory of the platform (default: ~/.corral, for root /var/lib/corral)')
    .option('--url <url>', 'address of a platform elsewhere (or CORRAL_URL)')
    .option('--token <token>', 'its token (or CORRAL_TOKEN)')
    .option('--json', 'print JSON')
}

/** Prints one JSON document, or what `text` makes of it for people. */
export function print<T>(value: T, options: { json?: boolean }, text: (value: T) => string): void {
  process.stdout.write(options.json ? `${JSON.stringify(value, null, 2)}\n` : `${text(value)}\n`)
}

export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
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

/** Resolves with the name of the first stop signal; a second one ends the process at once. */
export function untilStopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let count = 0
    const on = (signal: NodeJS.Signals): void => {
      count += 1
      if (count > 1) process.exit(130)
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
