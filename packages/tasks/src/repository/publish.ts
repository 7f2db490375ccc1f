import type { Git } from '../git/git.js'
import { pushFailure } from './git-failure.js'
import { quarantineOf, resultRef } from './quarantine.js'
import type { PublishRequest } from './repository.js'
import type { ReachableRepository } from './repository-view.js'
import { shellQuote } from './shell-quote.js'

/**
 * Puts the accepted commit on its branch: a local repository fetches it into the ref, so its work tree and HEAD stay as
 * they are; a remote one gets a push with the user's credentials. A branch that already stands at the commit is done;
 * one that stands elsewhere and is not an ancestor is refused by git, unless it stands at a commit of a task that this
 * one repeats.
 */
export async function publishResult(
  request: PublishRequest & { git: Git; location: ReachableRepository },
): Promise<void> {
  const { git, location, branch, commit, signal } = request
  const quarantine = quarantineOf(request.taskDirectory)
  const ref = `refs/heads/${branch}`
  const isReplaced = (stands: string | undefined): boolean =>
    stands !== undefined && request.replaces?.includes(stands) === true
  try {
    if (location.kind === 'local') {
      const mayReplace = (request.replaces?.length ?? 0) > 0
      const force = mayReplace && isReplaced(await commitOf(git, location.address, ref, signal)) ? '+' : ''
      // Not quiet: the line that says why a ref was refused is part of what it keeps to itself otherwise.
      const options = ['--no-tags', '--no-write-fetch-head', '--no-auto-maintenance', '--no-recurse-submodules']
      await git(['fetch', ...options, quarantine, `${force}${resultRef}:${ref}`], {
        cwd: location.address,
        env: { GIT_DIR: location.address },
        signal,
      })
      return
    }
    const { stdout } = await git(['ls-remote', location.address, ref], { signal, timeoutMs: 60_000 })
    // The remote also names refs that only end so, such as those of a fork it keeps below another name.
    const stands = stdout
      .split('\n')
      .find((line) => line.endsWith(`\t${ref}`))
      ?.split('\t')[0]
    if (stands === commit) return
    const receive = location.hooks ? [`--receive-pack=${receiveWith(location.hooks.directory)}`] : []
    // The remote checks that the branch still stands where it was seen.
    const lease = isReplaced(stands) ? [`--force-with-lease=${ref}:${stands}`] : []
    await git(['push', '--quiet', '--no-verify', ...receive, ...lease, location.address, `${commit}:${ref}`], {
      cwd: quarantine,
      signal,
      timeoutMs: 10 * 60_000,
    })
  } catch (error) {
    if (signal.aborted) throw error
    // A repeat of a push that was done: git does not fetch into a branch that was checked out since, not even the same commit.
    if (location.kind === 'local' && (await commitOf(git, location.address, ref, signal)) === commit) return
    throw pushFailure(error, location.url, branch)
  }
}

/** The other side of a push to a repository on this machine; the platform's own configuration would run no hook. */
function receiveWith(hooksDirectory: string): string {
  return `git -c ${shellQuote(`core.hooksPath=${hooksDirectory}`)} receive-pack`
}

async function commitOf(git: Git, cwd: string, ref: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { stdout } = await git(['rev-parse', '--verify', '--quiet', ref], { cwd, env: { GIT_DIR: cwd }, signal })
    return stdout.trim()
  } catch {
    // The branch does not exist yet: the usual case.
    return undefined
  }
}
