import { areaText, areaUsage, makeRoom } from '@corral/node'
import type { Logger } from '@corral/ports'
import { CliError } from '../cli-error.js'
import type { DataDirectory } from './data-directory.js'

/**
 * Sees to it that a start finds room on the disk: frees the reserve and remains of pods, and refuses with what takes the space where
 * that is not enough. Call with the lock of the directory held.
 */
export function requireRoom(directory: DataDirectory, log: Logger): void {
  const { freeBytes, neededBytes, freed } = makeRoom(directory.path)
  if (freed.length > 0) log.warn('the disk is full: freed what could be spared', { freed })
  // Half of it will often do: what a start writes anew was there already on the run before.
  if (freeBytes >= neededBytes / 2) return
  const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`
  const areas = areaText(areaUsage(directory.path))
  throw new CliError(
    `the disk of ${directory.path} is full: ${mebibytes(freeBytes)} free, a start needs ${mebibytes(neededBytes)}`,
    {
      exitCode: 3,
      hint: `Free space on that disk${areas ? `; the data directory holds ${areas}` : ''}.`,
    },
  )
}
