import { execFile } from 'node:child_process'
import { lstat, opendir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Up to here Node's own removal is quicker than a program that has to be started. */
const fewEntries = 1_000

/**
 * Removes a directory that a sandbox has written to, whatever it has left there: millions of names, of which Node's own
 * removal keeps every one in memory, directories deeper than a path can say, which it gives up on, and, without root,
 * directories that have no permissions. An absent tree counts as removed.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    if (!(await hasFewEntries(path))) return await removeLiveTree(path)
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
  const script = 'rm -rf -- "$1" 2>/dev/null && exit; chmod -R u+rwX -- "$1" 2>/dev/null; exec rm -rf -- "$1"'
  await promisify(execFile)('/bin/sh', ['-c', script, 'sh', path], { maxBuffer: 64 * 1024 * 1024 })
}

/** Reads directories piece by piece, and no further than the answer needs. */
async function hasFewEntries(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined)
  const waiting = found?.isDirectory() ? [path] : []
  let entries = 0
  for (let current = waiting.pop(); current !== undefined; current = waiting.pop()) {
    for await (const entry of await opendir(current)) {
      entries += 1
      if (entries > fewEntries) return false
      if (entry.isDirectory()) waiting.push(join(current, entry.name))
    }
  }
  return true
}
