import type { LogLevel } from '../output/logger.js'
import { writeAtomically } from './data-directory.js'

/** What every part of the platform that runs on its own is told. */
export interface PartOptions {
  dataDir?: string
  readyFile?: string
  logLevel: LogLevel
}

/** Says on standard output, and in the ready file where one was asked for, that the part is ready. */
export function announce(options: PartOptions, record: object): void {
  const text = `${JSON.stringify(record)}\n`
  if (options.readyFile) writeAtomically(options.readyFile, text, 0o600)
  process.stdout.write(text)
}
