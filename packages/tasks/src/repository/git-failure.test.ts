import { expect, it } from 'vitest'
import { GitError } from '../git/git.js'
import { pushFailure, readFailure } from './git-failure.js'

const url = 'https://git.example.com/a/b'

it.each<{ says: string; code: string; message: string; hint: RegExp }>([
  {
    says: 'error: unable to write file\nfatal: write error: No space left on device',
    code: 'DiskFull',
    message:
      'the disk filled up while reading the repository: error: unable to write file; fatal: write error: No space left on device',
    hint: /^Free space on the disk/,
  },
  {
    says: "fatal: could not read Username for 'https://git.example.com': terminal prompts disabled",
    code: 'RepositoryAccessDenied',
    message: `access to ${url} was denied: fatal: could not read Username for 'https://git.example.com': terminal prompts disabled`,
    hint: /credential helpers/,
  },
  {
    says: `error: unable to read ${'a'.repeat(40)}\nfatal: git-pack-objects died`,
    code: 'RepositoryDamaged',
    message: `${url} is damaged or a partial clone: objects are missing in it: error: unable to read ${'a'.repeat(40)}`,
    hint: /git fsck/,
  },
  {
    says: 'ERROR: Repository not found.\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.',
    code: 'RepositoryNotFound',
    message: `there is no git repository at ${url}: ERROR: Repository not found.`,
    hint: /^Check the address/,
  },
  {
    says: "fatal: '/srv/none' does not appear to be a git repository",
    code: 'RepositoryNotFound',
    message: `there is no git repository at ${url}`,
    hint: /^Check the address/,
  },
  {
    says: 'Cloning into bare repository\nremote: Counting objects: 1\nfatal: protocol error: bad line\0 length 12\n\n',
    code: 'CloneFailed',
    message: `reading ${url} failed: fatal: protocol error: bad line length 12`,
    hint: /by hand with git/,
  },
  {
    says: 'remote: Counting objects: 7',
    code: 'CloneFailed',
    message: `reading ${url} failed: remote: Counting objects: 7`,
    hint: /by hand with git/,
  },
])('a read that ends with $code says what git said beyond that', ({ says, code, message, hint }) => {
  const cause = new GitError(['fetch'], 128, says)
  const failure = readFailure(cause, url)
  expect(failure).toMatchObject({ code, message, cause })
  expect(failure.hint).toMatch(hint)
})

it('a failure that is not git’s own is told as it is', () => {
  const cause = new Error('spawn git ENOENT')
  expect(readFailure(cause, url)).toMatchObject({ code: 'CloneFailed', message: 'Error: spawn git ENOENT', cause })
})

it.each<[says: string, code: string, text: RegExp]>([
  ['fatal: unable to write: No space left on device', 'DiskFull', /while pushing to/],
  ['! [rejected] work -> work (non-fast-forward)', 'BranchExists', /has commits that the task does not build on/],
  ['! [rejected] work -> work (fetch first)', 'BranchExists', /has commits that the task does not build on/],
  ['remote: Permission to a/b.git denied to c.', 'PushDenied', /may not push/],
  ['remote: error: GH006: Protected branch update failed', 'BranchProtected', /protects branch "work"/],
  ["fatal: unable to access 'https://git.example.com/': Could not resolve host", 'PushFailed', /did not take branch/],
  ['error: cannot lock ref refs/heads/work', 'PushFailed', /cannot lock ref/],
  [
    "error: cannot lock ref 'refs/heads/work': 'refs/heads/work/a' exists; cannot create 'refs/heads/work'",
    'BranchConflict',
    /cannot exist beside the branch "work\/a"/,
  ],
  ['! [remote rejected] work -> work (directory file conflict)', 'BranchConflict', /cannot exist beside a branch/],
  ['remote: pre-receive hook declined', 'PushRefused', /hook declined/],
])('a push that git ends with %j is %s', (says, code, text) => {
  const failure = pushFailure(new GitError(['push'], 1, says), url, 'work')
  expect(failure.code).toBe(code)
  expect(failure.message).toMatch(text)
})

it('work for a branch that moved on meanwhile is to be pushed to another one, and nothing to be removed', () => {
  const failure = pushFailure(new GitError(['push'], 1, '! [rejected] main -> main (fetch first)'), url, 'main')
  expect(failure.hint).toContain('corral task retry ID --branch NAME')
  expect(failure.hint).not.toContain('remove')
})
