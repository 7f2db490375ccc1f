import { rm } from 'node:fs/promises'
import { GitError } from '../git/git.js'
import type { QuarantineGits } from './quarantine-gits.js'
import type { AcceptRequest } from './repository.js'

/**
 * Writes the change as a patch, byte for byte as git makes it. Undefined where it does not fit into the limits of git:
 * a result is not lost because its patch is too large, and a part of a patch is worse than none.
 */
export async function writePatch(
  gits: Pick<QuarantineGits, 'takePatch'>,
  { baseCommit, claimedCommit, signal }: Pick<AcceptRequest, 'baseCommit' | 'claimedCommit' | 'signal'>,
): Promise<string | undefined> {
  const { path, file, git } = await gits.takePatch()
  try {
    git.stdin.end(`${claimedCommit} ${baseCommit}\n`)
    await git.ended
  } catch (error) {
    if (signal.aborted || !(error instanceof GitError) || isDiskFull(error)) throw error
    await rm(path, { force: true })
    return undefined
  } finally {
    await git.close()
    await file.close()
  }
  return path
}

function isDiskFull({ stderr }: GitError): boolean {
  return /No space left on device|disk quota exceeded/i.test(stderr)
}
