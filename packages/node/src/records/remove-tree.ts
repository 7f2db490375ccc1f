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
    await removeLiveTree(path)
  }
}

/**
 * The same while processes of the sandbox may still run. They could put a link in place of a directory between Node's look
 * at it and its way into it, and files of the host behind the link would be removed. `rm` goes by descriptors instead of
 * paths; neither it nor `chmod -R` follows a link.
 */
export async function removeLiveTree(path: string): Promise<void> {
  const script = 'chmod -R u+rwX -- "$1" 2>/dev/null; exec rm -rf -- "$1"'
  await promisify(execFile)('/bin/sh', ['-c', script, 'sh', path], { maxBuffer: 64 * 1024 * 1024 })
}
