import type { Git } from '../git/git.js'
import { quarantineOf, resultRef } from './accept.js'
import { pushFailure } from './git-failure.js'
import type { PublishRequest } from './repository.js'
import type { RepositoryLocation } from './repository-url.js'

/**
 * Puts the accepted commit on its branch: a local repository fetches it into the ref, so its work tree and HEAD stay as
 * they are; a remote one gets a push with the user's credentials. A branch that already stands at the commit is done;
 * one that stands elsewhere and is not an ancestor is refused by git.
 */
export async function publishResult(
  request: PublishRequest & { git: Git; location: RepositoryLocation },
): Promise<void> {
  const { git, location, branch, commit, signal } = request
  const quarantine = quarantineOf(request.taskDirectory)
  const ref = `refs/heads/${branch}`
  try {
    if (location.kind === 'local') {
      if (await standsAt(git, location.path, ref, commit, signal)) return
      // Not quiet: the line that says why a ref was refused is part of what it keeps to itself otherwise.
      await git(['fetch', '--no-tags', '--no-write-fetch-head', quarantine, `${resultRef}:${ref}`], {
        cwd: location.path,
        signal,
      })
      return
    }
    const { stdout } = await git(['ls-remote', location.url, ref], { signal, timeoutMs: 60_000 })
    if (stdout.startsWith(commit)) return
    await git(['push', '--quiet', '--no-verify', location.url, `${commit}:${ref}`], {
      cwd: quarantine,
      signal,
      timeoutMs: 10 * 60_000,
    })
  } catch (error) {
    if (signal.aborted) throw error
    throw pushFailure(error, location.url, branch)
  }
}

async function standsAt(git: Git, cwd: string, ref: string, commit: string, signal: AbortSignal): Promise<boolean> {
  try {
    const { stdout } = await git(['rev-parse', '--verify', '--quiet', ref], { cwd, signal })
    return stdout.trim() === commit
  } catch {
    // The branch does not exist yet: the usual case.
    return false
  }
}
