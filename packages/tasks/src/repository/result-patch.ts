import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConfinedGit } from '../git/confined-git.js'
import { GitError } from '../git/git.js'
import type { AcceptRequest } from './repository.js'

/**
 * The form of a patch that `git apply` turns into the very same tree: whole object names, binary files included. Only
 * exact renames are looked for: others mean reading every file.
 */
const patchOptions = ['--binary', '--full-index', '--no-color', '--no-ext-diff', '--no-textconv', '-M100%']

/**
 * Writes the change as a patch, byte for byte as git makes it. Undefined where it does not fit into the limits of `git`:
 * a result is not lost because its patch is too large, and a part of a patch is worse than none.
 */
export async function writePatch(
  git: ConfinedGit,
  { taskDirectory, baseCommit, claimedCommit, signal }: AcceptRequest,
  timeoutMs: number,
): Promise<string | undefined> {
  const path = join(taskDirectory, 'result.patch')
  const file = await open(path, 'w', 0o600)
  try {
    const args = ['diff-tree', '-r', '-p', ...patchOptions, baseCommit, claimedCommit]
    await git.run(args, { stdout: file.fd, signal, timeoutMs })
  } catch (error) {
    if (signal.aborted || !(error instanceof GitError) || isDiskFull(error)) throw error
    await rm(path, { force: true })
    return undefined
  } finally {
    await file.close()
  }
  return path
}

function isDiskFull({ stderr }: GitError): boolean {
  return /No space left on device|disk quota exceeded/i.test(stderr)
}
