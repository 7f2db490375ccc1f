import { execFile } from 'node:child_process'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** How much of a process's output is kept in the sandbox: what the platform keeps, and some more on either side. */
export interface OutputKeep {
  readonly headBytes: number
  readonly tailBytes: number
  /** The middle is dropped in pieces of at least this size. */
  readonly stepBytes: number
}

const mebibyte = 1024 * 1024
export const defaultKeep: OutputKeep = {
  headBytes: 160 * mebibyte,
  tailBytes: 160 * mebibyte,
  stepBytes: 32 * mebibyte,
}

/** Offsets of output that is no longer there; `to` is the first that is. */
export interface OutputGap {
  readonly from: number
  readonly to: number
}

export async function readGap(directory: string): Promise<OutputGap | undefined> {
  try {
    const { from, to } = JSON.parse(await readFile(join(directory, 'gap'), 'utf8')) as Record<string, unknown>
    return Number.isSafeInteger(from) && Number.isSafeInteger(to) ? { from: Number(from), to: Number(to) } : undefined
  } catch {
    // Nothing was dropped; or the process damaged its own record, and reads zeros where bytes are gone.
    return undefined
  }
}

/** Told before it is done: what a reader is told is missing may still be there, never the other way round. */
export async function writeGap(directory: string, gap: OutputGap): Promise<void> {
  const path = join(directory, 'gap')
  await writeFile(`${path}.new`, JSON.stringify(gap), { mode: 0o600 })
  await rename(`${path}.new`, path)
}

/**
 * Gives the disk space of a part of a file back; its length and what lies behind keep their places. Rejects where the
 * file system or the `fallocate` of the image cannot: the log then grows up to the limit of the sandbox's disk.
 */
export async function punchHole(path: string, offset: number, length: number): Promise<void> {
  if (length <= 0) return
  const args = ['--punch-hole', '--offset', String(offset), '--length', String(length), path]
  await promisify(execFile)('fallocate', args, { env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' }, timeout: 30_000 })
}
