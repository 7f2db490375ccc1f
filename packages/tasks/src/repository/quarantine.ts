import { copyFile, mkdir, open, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Confine } from '../git/confine.js'
import { type ConfinedGit, createConfinedGit } from '../git/confined-git.js'
import { GitError, type GitOptions, lastLines } from '../git/git.js'
import { maxResultBytes } from '../sandbox/collected-work.js'
import { TaskError } from '../task-error.js'
import { type BundleHeader, readBundleHeader } from './bundle-header.js'
import { newPointers } from './new-pointers.js'
import { ObjectReader } from './object-reader.js'
import type { AcceptedResult, AcceptRequest, DiffStat } from './repository.js'
import { writePatch } from './result-patch.js'
import { type ReadBudget, type WalkLimits, walkChanges } from './tree-walk.js'

export const resultRef = 'refs/heads/corral-result'

export interface QuarantineLimits extends WalkLimits {
  bundleBytes: number
  /** One object, unpacked. */
  objectBytes: number
  /** All files of the result that are new, unpacked. */
  changedBytes: number
  /** Entries of directories that are read to compare each commit of the result with the one before it. */
  historyEntries: number
  /** All files that any commit of the result brought, unpacked. */
  historyBytes: number
  /** One directory as git stores it. */
  directoryBytes: number
  memoryBytes: number
  cpuSeconds: number
  /** The patch that is kept; a longer one is left out, since a part of it would apply without a word. */
  patchBytes: number
}

const mebibyte = 1024 * 1024

export const quarantineLimits: Readonly<QuarantineLimits> = {
  bundleBytes: 512 * mebibyte,
  objectBytes: 512 * mebibyte,
  changedBytes: maxResultBytes,
  historyEntries: 10_000_000,
  historyBytes: 2 * maxResultBytes,
  directoryBytes: 32 * mebibyte,
  memoryBytes: 2048 * mebibyte,
  cpuSeconds: 120,
  changedFiles: 50_000,
  pathBytes: 4_096,
  pathDepth: 200,
  patchBytes: 1024 * mebibyte,
}

export interface Quarantine {
  mirror: string
  confine: Confine
  limits: QuarantineLimits
  path: string | undefined
}

const timeoutMs = 300_000

/**
 * Verifies a bundle from a sandbox in a bare repository that borrows the mirror's objects. The sandbox ran code we did
 * not write, so every claim is checked: one ref, base as ancestor, sizes, paths, object integrity. Every git that looks
 * at it is confined; nothing is checked out and no hook runs.
 */
export async function acceptResult(request: AcceptRequest & Quarantine): Promise<AcceptedResult> {
  const { signal, bundlePath, baseCommit, claimedCommit, limits } = request
  const { size } = await stat(bundlePath)
  if (size > limits.bundleBytes) throw tooLarge('bundleBytes', limits, `the result is ${size} bytes`)

  const directory = quarantineOf(request.taskDirectory)
  const { confine, path } = request
  const confined = (fileBytes: number): ConfinedGit =>
    createConfinedGit({ directory, readable: [request.mirror], limits: { ...limits, fileBytes }, confine, path })
  const git = confined(4 * limits.bundleBytes)
  const run = (args: string[], options: GitOptions = {}): Promise<string> =>
    git.run(args, { signal, timeoutMs, ...options }).then(
      ({ stdout }) => stdout,
      (error) => Promise.reject(explained(error, limits, signal)),
    )
  await makeBareRepository(directory, request)
  await unpack(bundlePath, claimedCommit, run)
  await writeFile(join(directory, resultRef), `${claimedCommit}\n`, { mode: 0o600 })
  const checks = await Promise.allSettled([
    isAncestor(run, baseCommit, claimedCommit),
    // Whatever the commit leads to is here or in the mirror: a hole would be found by the one who fetches the branch.
    run(['rev-list', '--quiet', '--objects', claimedCommit, '--not', baseCommit]),
    measure(git, run, request).catch((error) => Promise.reject(explained(error, limits, signal))),
  ])
  for (const check of checks) if (check.status === 'rejected') throw check.reason

  const [numstat, patchPath] = await Promise.all([
    run(['diff-tree', '-r', '--numstat', '-z', '--no-renames', baseCommit, claimedCommit], {
      maxOutputBytes: limits.changedFiles * (limits.pathBytes + 32),
    }),
    writePatch(confined(limits.patchBytes), request, timeoutMs),
  ])
  const lfs = request.lfs ? await newPointers(git, request, timeoutMs) : []
  return { commit: claimedCommit, diffStat: parseNumstat(numstat), ...(patchPath ? { patchPath } : {}), lfs }
}

export function quarantineOf(taskDirectory: string): string {
  return join(taskDirectory, 'quarantine.git')
}

type Run = (args: string[], options?: GitOptions) => Promise<string>

/** An empty bare repository; written by hand, since there is nothing in it that git would have to decide. */
async function makeBareRepository(
  directory: string,
  { mirror, baseCommit }: AcceptRequest & Quarantine,
): Promise<void> {
  await rm(directory, { recursive: true, force: true })
  for (const name of ['objects/info', 'objects/pack', 'refs/heads'])
    await mkdir(join(directory, name), { recursive: true, mode: 0o700 })
  const sha256 = '[extensions]\n\tobjectFormat = sha256\n'
  const isSha256 = baseCommit.length === 64
  const config = `[core]\n\trepositoryFormatVersion = ${isSha256 ? 1 : 0}\n\tbare = true\n${isSha256 ? sha256 : ''}`
  await writeFile(join(directory, 'config'), config, { mode: 0o600 })
  await writeFile(join(directory, 'objects/info/alternates'), `${join(mirror, 'objects')}\n`, { mode: 0o600 })
  // Where the history of a shallow repository ends, so that nothing looks for more of it.
  await copyFile(join(mirror, 'shallow'), join(directory, 'shallow')).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  await writeFile(join(directory, 'HEAD'), 'ref: refs/heads/main\n', { mode: 0o600 })
}

/** Takes the bundle's objects in, each of them checked as `git fsck` would. */
async function unpack(bundlePath: string, claimedCommit: string, run: Run): Promise<void> {
  const file = await open(bundlePath, 'r')
  try {
    const header = await readBundleHeader(file)
    if (typeof header === 'string') throw rejected(header)
    checkRefs(header, claimedCommit)
    // Reading without a position moves the place at which git goes on.
    await file.read(Buffer.alloc(header.packOffset), 0, header.packOffset, null)
    await run(['index-pack', '--stdin', '--fix-thin', '--fsck-objects'], { stdin: file.fd })
  } finally {
    await file.close()
  }
}

function checkRefs({ refs }: BundleHeader, claimedCommit: string): void {
  const names = refs.map(({ name }) => name)
  if (names.length !== 1 || names[0] !== resultRef)
    throw rejected(`the bundle carries other refs than the result: ${names.slice(0, 3).join(', ').slice(0, 300)}`)
  const sent = refs[0]!.commit
  if (sent !== claimedCommit) throw rejected(`the sandbox announced ${claimedCommit} but sent ${sent}`)
}

async function isAncestor(run: Run, baseCommit: string, commit: string): Promise<void> {
  try {
    await run(['merge-base', '--is-ancestor', baseCommit, commit])
  } catch (error) {
    if (error instanceof TaskError && (error.cause as GitError).exitCode === 1)
      throw rejected(`${commit} does not build on the base ${baseCommit}`, error.cause)
    throw error
  }
}

/**
 * Counts what changed and how large it is, before any git makes a list or a patch of it. The same for every commit on the way:
 * one that a later one takes back is in the branch all the same, and `git log -p` there would unpack it.
 */
async function measure(git: ConfinedGit, run: Run, request: AcceptRequest & Quarantine): Promise<void> {
  const { limits, signal, baseCommit, claimedCommit } = request
  const reader = new ObjectReader(git, { maxTreeBytes: limits.directoryBytes, signal, timeoutMs })
  try {
    const compare = async (before: string | undefined, after: string, budget?: ReadBudget): Promise<Set<string>> => {
      const walked = await walkChanges(reader, before, after, limits, budget)
      if ('broken' in walked) throw rejected(walked.broken)
      if ('exceeded' in walked) throw tooLarge(walked.exceeded, limits, limitWords[walked.exceeded])
      return walked.blobs
    }
    const [changed, commits] = await Promise.all([compare(baseCommit, claimedCommit), newCommits(run, request)])
    const bytes = await sizeOf(git, changed, signal)
    if (bytes > limits.changedBytes) throw tooLarge('changedBytes', limits, `the changed files are ${bytes} bytes`)
    if (commits.length === 1 && commits[0]!.parent === baseCommit) return
    const budget = { entries: limits.historyEntries }
    const brought = new Set<string>()
    for (const { commit, parent } of commits)
      for (const blob of await compare(parent, commit, budget)) brought.add(blob)
    const all = await sizeOf(git, brought, signal)
    if (all > limits.historyBytes) throw tooLarge('historyBytes', limits, `the files of its commits are ${all} bytes`)
  } finally {
    await reader.close()
  }
}

/** The commits the repository does not have yet, each with its first parent where it has one. */
async function newCommits(
  run: Run,
  { baseCommit, claimedCommit }: AcceptRequest,
): Promise<{ commit: string; parent: string | undefined }[]> {
  const range = [claimedCommit, '--not', baseCommit, '--alternate-refs']
  const lines = (await run(['rev-list', '--parents', ...range], { maxOutputBytes: 512 * mebibyte })).trim()
  if (lines === '') return []
  return lines.split('\n').map((line) => {
    const [commit = '', parent] = line.split(' ')
    return { commit, parent }
  })
}

const limitWords: Readonly<Record<keyof WalkLimits | 'historyEntries', string>> = {
  historyEntries: 'its commits have too many directories to compare',
  changedFiles: 'too many files changed',
  pathBytes: 'a path is too long',
  pathDepth: 'directories lie too deep inside each other',
}

/** The size of blobs together, from their headers: none is unpacked. */
async function sizeOf(git: ConfinedGit, blobs: ReadonlySet<string>, signal: AbortSignal): Promise<number> {
  if (blobs.size === 0) return 0
  const sizes = git.start(['cat-file', '--batch-check=%(objecttype) %(objectsize)'], { signal, timeoutMs })
  try {
    sizes.stdin.end(`${[...blobs].join('\n')}\n`)
    let text = ''
    for await (const chunk of sizes.stdout) text += String(chunk)
    await sizes.ended
    let total = 0
    for (const line of text.trim().split('\n')) {
      const size = /^blob (\d+)$/.exec(line)?.[1]
      if (size === undefined) throw rejected(`a file is not a blob but ${line.slice(0, 80)}`)
      total += Number(size)
    }
    return total
  } finally {
    await sizes.close()
  }
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

const limitSigns: readonly {
  limit: 'objectBytes' | 'memoryBytes' | 'cpuSeconds' | 'bundleBytes'
  isHit: (error: GitError) => boolean
}[] = [
  { limit: 'objectBytes', isHit: ({ stderr }) => /attempting to allocate .* over limit/.test(stderr) },
  { limit: 'memoryBytes', isHit: ({ stderr }) => /out of memory|cannot allocate memory/i.test(stderr) },
  { limit: 'cpuSeconds', isHit: ({ exitCode, stderr }) => exitCode === 128 + 24 || /no answer within/.test(stderr) },
  { limit: 'bundleBytes', isHit: ({ exitCode, stderr }) => exitCode === 128 + 25 || /file too large/i.test(stderr) },
]

/** What a confined git's failure means: a limit it ran into, or something wrong with what the sandbox sent. */
function explained(error: unknown, limits: QuarantineLimits, signal: AbortSignal): unknown {
  if (!(error instanceof GitError) || signal.aborted) return error
  const hit = limitSigns.find(({ isHit }) => isHit(error))
  if (hit) return tooLarge(hit.limit, limits, 'unpacking it needs too much', error)
  return rejected(lastLines(error.stderr, 3) || `git ${error.args[0]} ended with ${error.exitCode}`, error)
}

function rejected(why: string, cause?: unknown): TaskError {
  return new TaskError('ResultRejected', `what came back from the sandbox was not accepted: ${why}`, {
    hint: 'The agent may have rewritten history or damaged its clone; see the task log, then retry.',
    cause,
  })
}

function tooLarge(limit: keyof QuarantineLimits, limits: QuarantineLimits, what: string, cause?: unknown): TaskError {
  return new TaskError('ResultTooLarge', `the result is larger than allowed: ${what} (${limit} ${limits[limit]})`, {
    hint: 'Keep build products and generated data out of the commit, then retry.',
    cause,
    details: { limit },
  })
}
