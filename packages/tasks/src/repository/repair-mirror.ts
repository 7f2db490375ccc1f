import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Git } from '../git/git.js'
import { GitError } from '../git/git.js'
import type { KeyedLock } from '../keyed-lock.js'

export interface MirrorRepair {
  readonly git: Git
  readonly lock: KeyedLock
  /** Of the mirror. */
  readonly directory: string
  readonly signal: AbortSignal
}

/** How git words what a power cut leaves of a repository: empty files and objects that are cut off. */
const damage =
  /not a git repository|is empty|corrupt|bad object|unable to (read|find|load|parse)|could not (read|parse)|inflate|missing (blob|tree|commit|object)|not a valid object|broken|packfile .* (cannot|is far|does not)|index file .* (too small|is truncated)/i

/**
 * Does `work` with a mirror; where git fails over damage in it, the mirror is removed and `work` done once more, which
 * fetches it again. A mirror is a copy: without this every later task on the repository would wait for it in vain.
 */
export async function withMirrorRepair<T>(repair: MirrorRepair, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!speaksOfDamage(error) || !(await removeDamaged(repair))) throw error
    return work()
  }
}

function speaksOfDamage(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause)
    if (damage.test(each instanceof GitError ? each.stderr : each.message)) return true
  return false
}

/**
 * Only what git itself finds to be damaged goes: the same words may be about the repository the mirror was made of, and
 * tasks that run have their base in a mirror that is whole.
 */
function removeDamaged({ git, lock, directory, signal }: MirrorRepair): Promise<boolean> {
  return lock.run(directory, async () => {
    signal.throwIfAborted()
    if (!existsSync(directory)) return false
    const check = ['fsck', '--no-dangling', '--no-progress', '--no-reflogs']
    const isWhole = await git(check, { cwd: directory, signal, timeoutMs: 10 * 60_000 }).then(
      () => true,
      (error: unknown) => {
        signal.throwIfAborted()
        // Out of time, or of memory: nothing is known.
        return !(error instanceof GitError) || error.exitCode === null || error.exitCode > 128
      },
    )
    if (isWhole) return false
    await rm(directory, { recursive: true, force: true })
    return true
  })
}
