import { createReadStream } from 'node:fs'
import { copyFile, mkdir, open, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import type { Confine } from '../git/confine.js'
import { type ConfinedGit, createConfinedGit, type GitConversation } from '../git/confined-git.js'
import { GitError, lastLines } from '../git/git.js'
import { maxResultBytes } from '../sandbox/collected-work.js'
import { TaskError } from '../task-error.js'
import { type BundleHeader, readBundleHeader } from './bundle-header.js'
import { newPointers } from './new-pointers.js'
import { ObjectReader } from './object-reader.js'
import { QuarantineGits } from './quarantine-gits.js'
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
export async function acceptResult(
  request: AcceptRequest & Quarantine,
  prepared?: PreparedQuarantine,
): Promise<AcceptedResult> {
  const { signal, bundlePath, claimedCommit, limits } = request
  const { git, gits } = prepared ?? (await prepareQuarantine(request))
  const orExplained = (error: unknown): never => {
    throw explained(error, limits, signal)
  }
  try {
    const { size } = await stat(bundlePath)
    if (size > limits.bundleBytes) throw tooLarge('bundleBytes', limits, `the result is ${size} bytes`)
    await unpack(gits, request).catch(orExplained)
    await writeFile(join(quarantineOf(request.taskDirectory), resultRef), `${claimedCommit}\n`, { mode: 0o600 })
    const checks = await Promise.allSettled([checkHistory(gits, request), measure(gits, request)])
    for (const check of checks) if (check.status === 'rejected') orExplained(check.reason)

    const [numstat, patchPath] = await Promise.all([
      numstatOf(gits, request).catch(orExplained),
      writePatch(gits, request),
    ])
    const lfs = request.lfs ? await newPointers(git, request, timeoutMs) : []
    return { commit: claimedCommit, diffStat: parseNumstat(numstat), ...(patchPath ? { patchPath } : {}), lfs }
  } finally {
    await gits.close()
  }
}

/** An empty quarantine and the gits that look at what is put into it. */
export interface PreparedQuarantine {
  git: ConfinedGit
  gits: QuarantineGits
}

/** Makes the quarantine of a task anew. The caller accepts a result with it, or closes its gits. */
export async function prepareQuarantine(
  request: Pick<AcceptRequest, 'taskDirectory' | 'baseCommit' | 'signal'> & Quarantine,
): Promise<PreparedQuarantine> {
  const { taskDirectory, limits, confine, path, signal } = request
  const directory = quarantineOf(taskDirectory)
  const confined = (fileBytes: number): ConfinedGit =>
    createConfinedGit({ directory, readable: [request.mirror], limits: { ...limits, fileBytes }, confine, path })
  const git = confined(4 * limits.bundleBytes)
  await makeBareRepository(directory, request)
  const gits = new QuarantineGits({ git, patchGit: confined(limits.patchBytes), taskDirectory }, { signal, timeoutMs })
  return { git, gits }
}

export function quarantineOf(taskDirectory: string): string {
  return join(taskDirectory, 'quarantine.git')
}

/** An empty bare repository; written by hand, since there is nothing in it that git would have to decide. */
async function makeBareRepository(
  directory: string,
  { mirror, baseCommit }: Pick<AcceptRequest, 'baseCommit'> & Pick<Quarantine, 'mirror'>,
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
async function unpack(
  gits: QuarantineGits,
  { bundlePath, claimedCommit }: Pick<AcceptRequest, 'bundlePath' | 'claimedCommit'>,
): Promise<void> {
  const packOffset = await checkedHeader(bundlePath, claimedCommit)
  const git = await gits.take('unpack')
  try {
    git.stdout.resume()
    // A git that refuses the pack closes the pipe before all of it was written; what it says of that counts.
    await pipeline(createReadStream(bundlePath, { start: packOffset }), git.stdin).catch(() => undefined)
    await git.ended
  } finally {
    await git.close()
  }
}

/** Where the pack begins, of a bundle with nothing but the result. */
async function checkedHeader(bundlePath: string, claimedCommit: string): Promise<number> {
  const file = await open(bundlePath, 'r')
  try {
    const header = await readBundleHeader(file)
    if (typeof header === 'string') throw rejected(header)
    checkRefs(header, claimedCommit)
    return header.packOffset
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

/**
 * The result builds on the base, and whatever it leads to is here or in the mirror: a hole would be found by the one who
 * fetches the branch.
 */
async function checkHistory(
  gits: QuarantineGits,
  { baseCommit, claimedCommit }: Pick<AcceptRequest, 'baseCommit' | 'claimedCommit'>,
): Promise<void> {
  const git = await gits.take('reach')
  let isOnBase = claimedCommit === baseCommit
  try {
    git.stdin.end(`${claimedCommit}\n^${baseCommit}\n`)
    // Commits of the base that a new one builds on are the boundary.
    for await (const line of createInterface({ input: git.stdout })) if (line === `-${baseCommit}`) isOnBase = true
    await git.ended
  } finally {
    await git.close()
  }
  if (!isOnBase) throw rejected(`${claimedCommit} does not build on the base ${baseCommit}`)
}

/** `--numstat` of the whole change. */
async function numstatOf(
  gits: QuarantineGits,
  { baseCommit, claimedCommit, limits }: AcceptRequest & Pick<Quarantine, 'limits'>,
): Promise<string> {
  const git = await gits.take('numbers')
  try {
    git.stdin.end(`${claimedCommit} ${baseCommit}\n`)
    return await textOf(git, limits.changedFiles * (limits.pathBytes + 32))
  } finally {
    await git.close()
  }
}

/** What git writes until it ends; of more than `maxBytes` the beginning. */
async function textOf(git: GitConversation, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of git.stdout as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size <= maxBytes) chunks.push(chunk)
  }
  await git.ended
  return Buffer.concat(chunks).toString('utf8')
}

/**
 * Counts what changed and how large it is, before any git makes a list or a patch of it. The same for every commit on the way:
 * one that a later one takes back is in the branch all the same, and `git log -p` there would unpack it.
 */
async function measure(gits: QuarantineGits, request: AcceptRequest & Quarantine): Promise<void> {
  const { limits, baseCommit, claimedCommit } = request
  const reader = new ObjectReader(await gits.take('objects'), { maxTreeBytes: limits.directoryBytes })
  try {
    const compare = async (before: string | undefined, after: string, budget?: ReadBudget): Promise<Set<string>> => {
      const walked = await walkChanges(reader, before, after, limits, budget)
      if ('broken' in walked) throw rejected(walked.broken)
      if ('exceeded' in walked) throw tooLarge(walked.exceeded, limits, limitWords[walked.exceeded])
      return walked.blobs
    }
    const [changed, commits] = await Promise.all([compare(baseCommit, claimedCommit), newCommits(gits, request)])
    const bytes = await sizeOf(gits, changed)
    if (bytes > limits.changedBytes) throw tooLarge('changedBytes', limits, `the changed files are ${bytes} bytes`)
    if (commits.length === 1 && commits[0]!.parent === baseCommit) return
    const budget = { entries: limits.historyEntries }
    const brought = new Set<string>()
    for (const { commit, parent } of commits)
      for (const blob of await compare(parent, commit, budget)) brought.add(blob)
    const all = await sizeOf(gits, brought)
    if (all > limits.historyBytes) throw tooLarge('historyBytes', limits, `the files of its commits are ${all} bytes`)
  } finally {
    await reader.close()
  }
}

/** The commits the repository does not have yet, each with its first parent where it has one. */
async function newCommits(
  gits: QuarantineGits,
  { baseCommit, claimedCommit }: AcceptRequest,
): Promise<{ commit: string; parent: string | undefined }[]> {
  const git = await gits.take('commits')
  try {
    git.stdin.end(`${claimedCommit}\n^${baseCommit}\n`)
    const lines = (await textOf(git, 512 * mebibyte)).trim()
    if (lines === '') return []
    return lines.split('\n').map((line) => {
      const [commit = '', parent] = line.split(' ')
      return { commit, parent }
    })
  } finally {
    await git.close()
  }
}

const limitWords: Readonly<Record<keyof WalkLimits | 'historyEntries', string>> = {
  historyEntries: 'its commits have too many directories to compare',
  changedFiles: 'too many files changed',
  pathBytes: 'a path is too long',
  pathDepth: 'directories lie too deep inside each other',
}

/** The size of blobs together, from their headers: none is unpacked. */
async function sizeOf(gits: QuarantineGits, blobs: ReadonlySet<string>): Promise<number> {
  if (blobs.size === 0) return 0
  const sizes = await gits.take('sizes')
  try {
    sizes.stdin.end(`${[...blobs].join('\n')}\n`)
    const text = await textOf(sizes, Number.POSITIVE_INFINITY)
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
