import { CliError } from '../cli-error.js'
import { shellQuote } from '../output/shell-quote.js'
import type { DataDirectory } from './data-directory.js'

/** A database that cannot be used, with the way out; other errors as they are. */
export function explainStorage(error: unknown, directory: DataDirectory, now: Date = new Date()): unknown {
  const { code, message = '', cause } = error as { code?: string; message?: string; cause?: unknown }
  const why = cause instanceof Error && !message.includes(cause.message) ? ` (${cause.message})` : ''
  if (code === 'StorageCorrupt')
    return new CliError(`${message}${why}`, {
      exitCode: 3,
      hint: wayOut(directory, now),
      cause: error,
    })
  if (code === 'StorageTooNew')
    return new CliError(`${directory.path} was written by a newer Corral: ${message}`, {
      exitCode: 3,
      hint: 'Use that version, or start with another --data-dir.',
      cause: error,
    })
  return error
}

/** What the user can paste. The records of tasks lie beside the database and stay. */
export function wayOut(directory: DataDirectory, now: Date): string {
  const stamp = now.toISOString().replace(/\D/g, '').slice(0, 14)
  return `Put it aside and start with an empty one: \`mv ${shellQuote(directory.api)} ${shellQuote(`${directory.api}.broken-${stamp}`)}\` (docs/troubleshooting.md says what that loses).`
}
