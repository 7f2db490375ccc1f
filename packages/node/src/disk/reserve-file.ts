import { execFile } from 'node:child_process'
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const MiB = 2 ** 20
const smallestBytes = MiB
const largestBytes = 64 * MiB

/** How much of a disk is kept back: enough to write down what happened and to end what fills it. */
export function reserveSize(totalBytes: number): number {
  return Math.round(Math.min(largestBytes, Math.max(smallestBytes, totalBytes / 16)))
}

/**
 * A file that takes room on the data directory's disk and does nothing else. Removing it is the one thing that always
 * works on a full disk, and gives the platform what it needs to finish.
 */
export interface ReserveFile {
  isThere(): boolean
  /** Safe to repeat. A file that could not be made whole is removed again. */
  make(bytes: number): Promise<void>
  release(): void
}

export function reserveFile(dataDir: string): ReserveFile {
  const path = join(dataDir, 'reserve')
  const release = (): void => rmSync(path, { force: true })
  return {
    isThere: () => (statSync(path, { throwIfNoEntry: false })?.blocks ?? 0) > 0,
    async make(bytes) {
      try {
        await promisify(execFile)('fallocate', ['-l', String(bytes), path]).catch(() => fill(path, bytes))
      } catch (error) {
        release()
        throw error
      }
    },
    release,
  }
}

/** For file systems and machines without fallocate. */
function fill(path: string, bytes: number): void {
  const file = openSync(path, 'w', 0o600)
  try {
    const zeros = Buffer.alloc(MiB)
    for (let left = bytes; left > 0; left -= zeros.length) writeSync(file, zeros, 0, Math.min(left, zeros.length))
  } finally {
    closeSync(file)
  }
}
