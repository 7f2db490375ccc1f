import { GitError, lastLines } from '../git/git.js'
import { TaskError } from '../task-error.js'

interface Rule {
  pattern: RegExp
  code: string
  message: (url: string) => string
  hint: string
}

const addressHint = 'Check the address; a local repository is given by its absolute path.'

const readRules: readonly Rule[] = [
  {
    pattern: /No space left on device|disk quota exceeded/i,
    code: 'DiskFull',
    message: () => 'the disk filled up while reading the repository',
    hint: 'Free space on the disk of the data directory, then retry the task.',
  },
  {
    pattern:
      /Authentication failed|could not read Username|Permission denied \(|terminal prompts disabled|HTTP 40[13]/i,
    code: 'RepositoryAccessDenied',
    message: (url) => `access to ${url} was denied`,
    hint: 'Check that git on this machine can fetch it: the platform uses your credential helpers and ssh agent.',
  },
  {
    pattern:
      /does not appear to be a git repository|repository .*not found|does not exist|No such file or directory|HTTP 404|not a git repository/i,
    code: 'RepositoryNotFound',
    message: (url) => `there is no git repository at ${url}`,
    hint: addressHint,
  },
]

/** What a failed clone or fetch means for the user. */
export function readFailure(error: unknown, url: string): TaskError {
  if (!(error instanceof GitError)) return new TaskError('CloneFailed', String(error), { cause: error })
  const rule = readRules.find(({ pattern }) => pattern.test(error.stderr))
  const said = reasonIn(error.stderr)
  if (rule)
    return new TaskError(rule.code, said ? `${rule.message(url)}: ${said}` : rule.message(url), {
      hint: rule.hint,
      cause: error,
    })
  return new TaskError('CloneFailed', `reading ${url} failed: ${said || lastLines(error.stderr, 3)}`, {
    hint: 'Run the same fetch by hand with git to see more.',
    cause: error,
  })
}

/** Lines in which git repeats itself or guesses: the message and its hint say it already. */
const idleLine =
  /^$|Could not read from remote repository|Please make sure you have the correct access|and the repository exists|does not appear to be a git repository|^Cloning into/

/** What git says beyond that it failed. */
function reasonIn(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.trim())
  return lastLines(lines.filter((line) => !idleLine.test(line)).join('\n'), 2)
}

export function repositoryMissing(url: string): TaskError {
  return new TaskError('RepositoryNotFound', `there is no git repository at ${url}`, { hint: addressHint })
}

export function branchMissing(branch: string, url: string): TaskError {
  return new TaskError('BranchNotFound', `there is no branch "${branch}" in ${url}`, {
    hint: 'List the branches with `git ls-remote --heads`, or leave the base branch out to use the default one.',
  })
}

/** What a failed push means for the user. The work is kept; the hint says how to push it by hand. */
export function pushFailure(error: unknown, url: string, branch: string): TaskError {
  const text = error instanceof GitError ? lastLines(error.stderr, 4) : String(error)
  const full = error instanceof GitError ? error.stderr : text
  if (/No space left on device/i.test(full))
    return new TaskError('DiskFull', `the disk filled up while pushing to ${url}`, { cause: error })
  if (/non-fast-forward|fetch first/i.test(full)) return branchTaken(branch, url, error)
  const unreachable = /could not resolve|unable to access|connection (refused|reset|timed out)|no answer within/i
  return new TaskError(
    unreachable.test(full) ? 'PushFailed' : 'PushRefused',
    `${url} did not take branch "${branch}": ${text}`,
    {
      hint: 'The commits are kept with the task: fix the cause, then retry, or take the diff with `corral task diff`.',
      cause: error,
    },
  )
}

/** The branch has commits that the task does not build on. */
export function branchTaken(branch: string, url: string, cause?: unknown): TaskError {
  return new TaskError('BranchExists', `branch "${branch}" of ${url} exists already and has work of its own`, {
    hint: 'Choose another name for the new branch, or remove the one that is there.',
    cause,
  })
}
