import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { promisify } from 'node:util'

/**
 * Removes a directory that a sandbox has written to, whatever it has left there: directories deeper than a path can say,
 * which Node's own removal gives up on, and, without root, directories that have no permissions. An absent tree counts as
 * removed.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch {
    // `rm` goes by descriptors instead of paths; neither it nor `chmod -R` follows a link.
    await promisify(execFile)('/bin/sh', ['-c', 'chmod -R u+rwX -- "$1"; exec rm -rf -- "$1"', 'sh', path])
  }
}
