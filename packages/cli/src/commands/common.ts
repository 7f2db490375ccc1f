import { type Command, Option } from 'commander'
import { CliError } from '../cli-error.js'
import type { FindOptions } from '../client/find-platform.js'
import { parseBytes } from '../output/parse-duration.js'

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

/** What environments of a cluster may keep, on the volume of the server. */
export function archiveBudgetOption(): Option {
  return new Option(
    '--snapshot-budget <size>',
    'disk that built environments may use, such as 5G; beyond it the least used go; 0 keeps none',
  )
    .argParser((text) => (text === '0' ? 0 : parseBytes(text)))
    .default(5_000_000_000, '5G')
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

/** Says that a name is taken, and what to do about it, instead of the request that was refused. */
export function takenName(kind: string, name: string | undefined, move: string): (error: { code?: string }) => never {
  return (error) => {
    if (error.code !== 'AlreadyExists' || name === undefined) throw error
    throw new CliError(`there is a ${kind} "${name}" already`, {
      hint: `${move}, or choose another name.`,
      cause: error,
    })
  }
}

/** For the user, beside the output: on standard error. */
export function say(text: string): void {
  process.stderr.write(`corral: ${text}\n`)
}

export function age(time: string, now: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000))
  if (seconds < 120) return `${seconds}s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`
}

/** No request may be larger; what comes without end, such as /dev/zero, would fill the memory. */
export const maxInputBytes: number = 16 * 1024 * 1024

export async function readStdin(): Promise<string> {
  if (process.stdin.isTTY) throw new CliError('nothing was given on standard input', { exitCode: 2 })
  const bytes = await new Promise<Buffer>((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    process.stdin.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      length += chunk.length
      if (length <= maxInputBytes) return
      process.stdin.destroy()
      reject(new CliError(`standard input is longer than ${maxInputBytes} bytes`, { exitCode: 2 }))
    })
    process.stdin.once('end', () => resolve(Buffer.concat(chunks)))
    process.stdin.once('error', reject)
  })
  return decodeText(bytes, 'standard input')
}

/** Bytes of another encoding would become replacement characters: another prompt, a key that does not work. */
export function decodeText(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new CliError(`${source} is not UTF-8 text`, {
      exitCode: 2,
      hint: 'Convert it, for example with `iconv -f ISO-8859-1 -t UTF-8`; PowerShell writes UTF-16 without `-Encoding utf8`.',
      cause,
    })
  }
}
