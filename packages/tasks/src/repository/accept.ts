import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Git, GitError, lastLines } from '../git/git.js'
import { TaskError } from '../task-error.js'
import type { AcceptedResult, AcceptRequest, DiffStat } from './repository.js'

export const resultRef = 'refs/heads/corral-result'

export const acceptLimits: { bundleBytes: number; changedFiles: number; patchBytes: number } = {
  bundleBytes: 512 * 1024 * 1024,
  changedFiles: 50_000,
  patchBytes: 16 * 1024 * 1024,
}

/**
 * Verifies a bundle from a sandbox in a bare quarantine that borrows the mirror's objects. The sandbox ran code we did
 * not write, so every claim is checked: one ref, base as ancestor, sizes, paths, object integrity. Nothing is checked
 * out and no hook runs.
 */
export async function acceptResult(request: AcceptRequest & { git: Git; mirror: string }): Promise<AcceptedResult> {
  const { git, signal, bundlePath, baseCommit } = request
  const { size } = await stat(bundlePath)
  if (size > acceptLimits.bundleBytes)
    throw rejected(`the result is ${size} bytes, more than ${acceptLimits.bundleBytes}`)

  const quarantine = quarantineOf(request.taskDirectory)
  await rm(quarantine, { recursive: true, force: true })
  await mkdir(quarantine, { recursive: true, mode: 0o700 })
  await git(['init', '--quiet', '--bare', quarantine], { signal })
  await writeFile(join(quarantine, 'objects', 'info', 'alternates'), `${join(request.mirror, 'objects')}\n`)

  const inQuarantine = (args: string[]): Promise<{ stdout: string }> =>
    git(args, { cwd: quarantine, signal, timeoutMs: 300_000, maxOutputBytes: 64 * 1024 * 1024 }).catch(
      (error: unknown) => {
        if (error instanceof GitError && !signal.aborted) throw rejected(lastLines(error.stderr, 3), error)
        throw error
      },
    )

  const heads = (await inQuarantine(['bundle', 'list-heads', bundlePath])).stdout.trim().split('\n')
  if (heads.length !== 1 || heads[0]?.split(' ')[1] !== resultRef)
    throw rejected(`the bundle carries other refs than the result: ${heads.slice(0, 3).join(', ').slice(0, 300)}`)
  await inQuarantine(['fetch', '--quiet', '--no-tags', bundlePath, `${resultRef}:${resultRef}`])
  // A fetch from a bundle does not look inside objects, so the packs it left are indexed once more with that check on.
  for (const pack of await packsIn(quarantine))
    await inQuarantine(['index-pack', '--fsck-objects', '-o', `${pack}.checked`, pack])
  const commit = (await inQuarantine(['rev-parse', '--verify', `${resultRef}^{commit}`])).stdout.trim()
  if (commit !== request.claimedCommit)
    throw rejected(`the sandbox announced ${request.claimedCommit} but sent ${commit}`)
  await inQuarantine(['merge-base', '--is-ancestor', baseCommit, commit])

  const diffStat = parseNumstat(
    (await inQuarantine(['diff', '--numstat', '-z', '--no-renames', baseCommit, commit])).stdout,
  )
  if (diffStat.filesChanged > acceptLimits.changedFiles)
    throw rejected(`${diffStat.filesChanged} files changed, more than ${acceptLimits.changedFiles}`)
  const patchPath = join(request.taskDirectory, 'diff.patch')
  const { stdout: patch } = await git(['diff', '--no-color', '--no-ext-diff', '--no-textconv', baseCommit, commit], {
    cwd: quarantine,
    signal,
    maxOutputBytes: acceptLimits.patchBytes,
  })
  await writeFile(patchPath, patch, { mode: 0o600 })
  return { commit, diffStat, patchPath }
}

export function quarantineOf(taskDirectory: string): string {
  return join(taskDirectory, 'quarantine.git')
}

async function packsIn(quarantine: string): Promise<string[]> {
  const directory = join(quarantine, 'objects', 'pack')
  return (await readdir(directory)).filter((name) => name.endsWith('.pack')).map((name) => join(directory, name))
}

/** `git diff --numstat -z --no-renames`: `added TAB deleted TAB path NUL`; binary files count as changed without lines. */
export function parseNumstat(output: string): DiffStat {
  const total: DiffStat = { filesChanged: 0, insertions: 0, deletions: 0 }
  for (const entry of output.split('\0')) {
    const match = /^\s*(\d+|-)\t(\d+|-)\t/.exec(entry)
    if (!match) continue
    total.filesChanged += 1
    total.insertions += match[1] === '-' ? 0 : Number(match[1])
    total.deletions += match[2] === '-' ? 0 : Number(match[2])
  }
  return total
}

function rejected(why: string, cause?: unknown): TaskError {
  return new TaskError('ResultRejected', `what came back from the sandbox was not accepted: ${why}`, {
    hint: 'The agent may have rewritten history or damaged its clone; see the task log, then retry.',
    cause,
  })
}
