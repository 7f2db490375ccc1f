import { execFile } from 'node:child_process'
import { closeSync, existsSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const MiB = 2 ** 20
const smallestBytes = MiB
const largestBytes = 64 * MiB

/** How much of a disk is kept back: enough to write down what happened and to end what fills it. */
export function reserveSize(totalBytes: number): number {
  return Math.round(Math.min(largestBytes, Math.max(smallestBytes, totalBytes / 16)))
}

/** How many inodes are kept back: enough to take the commits of a sandbox out, and some of its files. */
export function reserveInodes(totalInodes: number): number {
  return Math.round(Math.min(1024, totalInodes / 16))
}

/**
 * A file, and empty ones in a directory, that take room on the data directory's disk and do nothing else. Removing them is the
 * one thing that always works on a disk that is full or has no inodes left, and gives the platform what it needs to finish.
 */
export interface ReserveFile {
  isThere(): boolean
  /** Safe to repeat. What could not be made whole is removed again. */
  make(bytes: number, inodes: number): Promise<void>
  release(): void
}

export function reserveFile(dataDir: string): ReserveFile {
  const path = join(dataDir, 'reserve')
  const names = join(dataDir, 'reserve-inodes')
  const release = (): void => {
    rmSync(path, { force: true })
    rmSync(names, { recursive: true, force: true })
  }
  return {
    isThere: () => (statSync(path, { throwIfNoEntry: false })?.blocks ?? 0) > 0 && existsSync(names),
    async make(bytes, inodes) {
      try {
        await promisify(execFile)('fallocate', ['-l', String(bytes), path]).catch(() => fill(path, bytes))
        await promisify(execFile)('/bin/sh', ['-c', makeNames, 'sh', names, String(inodes)])
      } catch (error) {
        release()
        throw error
      }
    },
    release,
  }
}

/** In a process of its own: a thousand names would hold up everything else. */
const makeNames =
  'mkdir -p -- "$1" && cd -- "$1" && i=0 && while [ "$i" -lt "$2" ]; do i=$((i + 1)) && : > "$i" || exit 1; done'

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
