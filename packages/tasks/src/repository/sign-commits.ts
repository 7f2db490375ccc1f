import { open, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { GitIdentity } from '@corral/protocol'
import { type Git, GitError, lastLines } from '../git/git.js'
import { TaskError } from '../task-error.js'
import { quarantineOf, resultRef } from './quarantine.js'

export interface SignRequest {
  /** Its quarantine holds the accepted result. */
  taskDirectory: string
  baseCommit: string
  commit: string
  /** Who signs, and so who commits. */
  committer: GitIdentity
  signal: AbortSignal
}

/** A signing helper may wait for a passphrase that no user can type: the task fails after this time. */
const timeoutMs = 60_000
const maxCommits = 1_000

/**
 * Makes every commit of a result anew with the signature of the platform's user: tree, author, dates and message stay, the
 * committer is the one who signs. Which key and program is the user's global git configuration; nothing of the repository
 * is asked. Answers the new last commit and a bundle of it. Throws `SigningFailed`; the result is still there then.
 */
export async function signCommits(
  request: SignRequest & { git: Git },
): Promise<{ commit: string; bundlePath: string }> {
  const { git, baseCommit, commit, signal } = request
  const directory = quarantineOf(request.taskDirectory)
  const run = (args: string[], more: { env?: Record<string, string>; stdout?: number } = {}) =>
    git(args, { cwd: directory, signal, timeoutMs, ...more, env: { GIT_DIR: directory, ...more.env } })
  const { stdout } = await run(['rev-list', '--topo-order', '--reverse', commit, '--not', baseCommit])
  const commits = stdout.split('\n').filter((id) => id !== '')
  if (commits.length > maxCommits)
    throw new TaskError('SigningFailed', `the result has ${commits.length} commits; ${maxCommits} can be signed`)
  const signed = new Map<string, string>()
  const path = join(request.taskDirectory, 'signing')
  try {
    for (const id of commits) {
      const file = await open(path, 'w', 0o600)
      try {
        await run(['cat-file', 'commit', id], { stdout: file.fd })
      } finally {
        await file.close()
      }
      const { tree, parents, author, committedAt, encoding, message } = parseCommit(await readFile(path))
      await writeFile(path, message)
      const of = parents.flatMap((parent) => ['-p', signed.get(parent) ?? parent])
      const words = encoding === undefined ? [] : ['-c', `i18n.commitEncoding=${encoding}`]
      const env = {
        GIT_AUTHOR_NAME: author.name || request.committer.name,
        GIT_AUTHOR_EMAIL: author.email,
        GIT_AUTHOR_DATE: author.at,
        GIT_COMMITTER_NAME: request.committer.name,
        GIT_COMMITTER_EMAIL: request.committer.email,
        GIT_COMMITTER_DATE: committedAt,
      }
      const made = await run([...words, 'commit-tree', '-S', ...of, '-F', path, tree], { env })
      signed.set(id, made.stdout.trim())
    }
  } catch (error) {
    if (signal.aborted || !(error instanceof GitError)) throw error
    throw new TaskError('SigningFailed', `the commits could not be signed: ${lastLines(error.stderr, 3)}`, {
      cause: error,
    })
  } finally {
    await rm(path, { force: true })
  }
  const last = signed.get(commit) ?? commit
  await writeFile(join(directory, resultRef), `${last}\n`, { mode: 0o600 })
  const bundlePath = join(request.taskDirectory, 'signed.bundle')
  await run(['bundle', 'create', '--quiet', bundlePath, `${baseCommit}..${resultRef}`])
  return { commit: last, bundlePath }
}

interface CommitParts {
  tree: string
  parents: string[]
  author: { name: string; email: string; at: string }
  committedAt: string
  encoding: string | undefined
  message: Buffer
}

/** A commit as git stores it; it has passed fsck. Other headers, such as a signature of the agent's, are left behind. */
export function parseCommit(raw: Buffer): CommitParts {
  const end = raw.indexOf('\n\n')
  const headers = raw.subarray(0, end).toString('utf8').split('\n')
  const all = (name: string): string[] =>
    headers.flatMap((line) => (line.startsWith(`${name} `) ? [line.slice(name.length + 1)] : []))
  const [, name = '', email = '', time = '0', zone = '+0000'] = personIn(all('author')[0]) ?? []
  const [, , , committedAt = '0', committedZone = '+0000'] = personIn(all('committer')[0]) ?? []
  return {
    tree: all('tree')[0] ?? '',
    parents: all('parent'),
    author: { name, email, at: `@${time} ${zone}` },
    committedAt: `@${committedAt} ${committedZone}`,
    encoding: all('encoding')[0],
    message: raw.subarray(end + 2),
  }
}

const personIn = (line = ''): RegExpExecArray | null => /^(.*?) ?<([^>]*)> (\d+) ([+-]\d{4})$/.exec(line)
