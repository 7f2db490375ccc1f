import { GitError, lastLines } from '../git/git.js'
import { TaskError } from '../task-error.js'
import { shellQuote } from './shell-quote.js'

interface Rule {
  pattern: RegExp
  code: string
  message: (url: string) => string
  hint: string
}

/** Whether what a program said means that a disk is full. */
export function isDiskFullText(text: string): boolean {
  return /No space left on device|disk quota exceeded|disk of the sandbox is full/i.test(text)
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
    pattern: /possible repository corruption|unable to read [0-9a-f]{40}|bad object|object file .* is empty/i,
    code: 'RepositoryDamaged',
    message: (url) => `${url} is damaged or a partial clone: objects are missing in it`,
    hint: 'Run `git fsck` there. A clone made with `--filter` lacks files: name the address it was cloned from, or clone it again without.',
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
  /^$|Could not read from remote repository|Please make sure you have the correct access|and the repository exists|does not appear to be a git repository|^Cloning into|early EOF|invalid index-pack output|git-pack-objects died|aborting due to possible repository corruption|^From |^(remote: )?(Enumerating|Counting|Compressing|Receiving|Resolving|Total) /

/** What git says beyond that it failed. */
function reasonIn(stderr: string): string {
  const lines = stderr.split(/[\r\n]/).map((line) => line.replaceAll('\0', '').trim())
  return lastLines(lines.filter((line) => !idleLine.test(line)).join('\n'), 2)
}

export function repositoryMissing(url: string): TaskError {
  return new TaskError('RepositoryNotFound', `there is no git repository at ${url}`, { hint: addressHint })
}

export function branchMissing(branch: string, url: string, hint?: string): TaskError {
  return new TaskError('BranchNotFound', `there is no branch "${branch}" in ${url}`, {
    hint:
      hint ??
      `List the branches with \`git ls-remote --heads ${shellQuote(url)}\`, or leave the base branch out to use the default one.`,
  })
}

/** What a failed push means for the user. The work is kept; the hint says how to push it by hand. */
export function pushFailure(error: unknown, url: string, branch: string): TaskError {
  const text = error instanceof GitError ? lastLines(error.stderr, 4) : String(error)
  const full = error instanceof GitError ? error.stderr : text
  if (/No space left on device/i.test(full))
    return new TaskError('DiskFull', `the disk filled up while pushing to ${url}`, { cause: error })
  if (/non-fast-forward|fetch first/i.test(full)) return branchMoved(branch, url, error)
  if (isPushDenied(full)) return pushDenied(url, error)
  if (/protected branch|protected ref|GH006/i.test(full))
    return new TaskError('BranchProtected', `${url} protects branch "${branch}": ${text}`, {
      hint: 'The commits are kept with the task: `corral task retry ID --branch NAME` pushes them to another branch.',
      cause: error,
    })
  const conflict = /'refs\/heads\/([^']+)' exists; cannot create|directory.file conflict/i.exec(full)
  if (conflict) return branchConflict(branch, conflict[1], url, error)
  // A ref that is locked is being written: often by a push of ours whose answer never came.
  const unreachable =
    /could not resolve|unable to access|connection (refused|reset|timed out)|no answer within|cannot lock ref|remote end hung up|RPC failed/i
  return new TaskError(
    unreachable.test(full) ? 'PushFailed' : 'PushRefused',
    `${url} did not take branch "${branch}": ${text}`,
    {
      hint: 'The commits are kept with the task: fix the cause, then `corral task retry ID` pushes them; no agent runs again.',
      cause: error,
    },
  )
}

/** Whether a remote said that these credentials may not push. */
export function isPushDenied(text: string): boolean {
  return /Authentication failed|could not read Username|HTTP 40[13]|error: 40[13]|Permission .*denied|permission to push|not allowed to push|read.?only/i.test(
    text,
  )
}

export function pushDenied(url: string, cause: GitError | unknown): TaskError {
  const said = cause instanceof GitError ? `: ${lastLines(cause.stderr, 2)}` : ''
  return new TaskError('PushDenied', `the credentials of this machine may not push to ${url}${said}`, {
    hint: 'Ask for the right to push, or give the address of a fork; then retry the task.',
    cause,
  })
}

/** Another branch takes the place in which git would keep this one. */
export function branchConflict(branch: string, other: string | undefined, url: string, cause?: unknown): TaskError {
  const beside = other ? `the branch "${other}"` : 'a branch'
  return new TaskError('BranchConflict', `branch "${branch}" cannot exist beside ${beside} of ${url}`, {
    hint: 'git keeps a branch as a file, which cannot be a directory too: choose another name for the new branch (`corral task retry ID --branch NAME` after the agent ran).',
    cause,
  })
}

/** The branch got commits of others while the agent worked; it may be the one the work started from. */
function branchMoved(branch: string, url: string, cause: unknown): TaskError {
  return new TaskError('BranchExists', `branch "${branch}" of ${url} has commits that the task does not build on`, {
    hint: 'The commits are kept with the task: `corral task retry ID --branch NAME` pushes them to another branch, to be merged from there.',
    cause,
  })
}

/** The branch has commits that the task does not build on. */
export function branchTaken(branch: string, url: string, cause?: unknown): TaskError {
  return new TaskError('BranchExists', `branch "${branch}" of ${url} exists already and has work of its own`, {
    hint: 'Choose another name for the new branch (`corral task retry ID --branch NAME` after the agent ran), or remove the one that is there.',
    cause,
  })
}
