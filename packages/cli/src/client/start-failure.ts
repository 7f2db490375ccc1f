import { dirname } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { CliError } from '../cli-error.js'
import { dataDirWords } from '../output/next-commands.js'

/** A disk with less than this may not have kept what a start wrote. */
const leastLogBytes = 64 * 1024

const inUse = /^corral: .* is in use( by process \d+ .*)?$/

/** Whether a start ended because another platform has the data directory. */
export function isDirectoryInUse(output: string): boolean {
  return linesOf(output).some((line) => inUse.test(line))
}

/** The failure of a start from what it wrote: its own error and hint, where it named one. A full disk takes no such words. */
export function failureIn(
  output: string,
  code: number | string | null,
  { logPath, freeBytes, dataDir }: { logPath: string; freeBytes: number; dataDir?: string | undefined },
): CliError {
  const doctor = `\`corral doctor${dataDirWords(dataDir)}\``
  const lines = linesOf(output)
  const at = lines.findLastIndex((line) => line.startsWith('corral: ') && !inUse.test(line))
  const found = at < 0 ? undefined : lines[at]?.slice('corral: '.length)
  const hint = lines.slice(at + 1).find((line) => line.startsWith('hint: '))
  if (found !== undefined)
    return new CliError(`the platform could not start: ${found}`, {
      exitCode: 3,
      hint: hint?.slice('hint: '.length) ?? `See what is wrong with ${doctor}.`,
    })
  if (freeBytes < leastLogBytes)
    return new CliError(`the platform could not start: the disk of ${dirname(logPath)} is full`, {
      exitCode: 3,
      hint: 'Free space on that disk, or start with another --data-dir.',
    })
  const last = lines.findLast((line) => line.trim() !== '')
  return new CliError(`the platform ended with ${code} while starting${last ? `: ${last}` : ''}`, {
    exitCode: 3,
    hint: `See ${logPath}, or what ${doctor} finds.`,
  })
}

function linesOf(output: string): string[] {
  return stripVTControlCharacters(output).split('\n')
}
