import { execFile } from 'node:child_process'
import { isAbsolute } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Whether a repository is a directory of this machine. */
export const isLocal = (repo: string): boolean => isAbsolute(repo)

/** The branch that is checked out; undefined for a detached HEAD, and where there is no repository. */
export async function currentBranch(directory: string): Promise<string | undefined> {
  const answer = await run('git', ['-C', directory, 'symbolic-ref', '--quiet', '--short', 'HEAD']).catch(
    () => undefined,
  )
  return answer?.stdout.trim() || undefined
}

/** The default branch of a repository on a server, asked with the user's own credentials. */
export async function defaultBranch(url: string): Promise<string | undefined> {
  const answer = await run('git', ['ls-remote', '--symref', url, 'HEAD'], { timeout: 60_000 }).catch(() => undefined)
  return /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(answer?.stdout ?? '')?.[1]
}

/** Whether a file of a work tree is there in another form than it was committed. */
export async function isUncommitted(directory: string, path: string): Promise<boolean> {
  const answer = await run('git', ['-C', directory, 'status', '--porcelain', '--', path]).catch(() => undefined)
  return (answer?.stdout.trim() ?? '') !== ''
}
