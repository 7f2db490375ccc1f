import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import {
  copyFile,
  link,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Git } from '../git/git.js'
import { baseRefOf } from '../sandbox/collected-work.js'
import { readMirrorState } from './mirror-state.js'
import { readSourceFacts, type SourceFacts } from './source-facts.js'

/** A base as it travels into a sandbox. */
export interface BaseBundle {
  /** History of the base and the tags in it. */
  bundlePath: string
  /**
   * The index of the pack in the bundle: with it a sandbox takes the pack as it is, without reading every object of it. The
   * name is empty where there is nothing to send beyond `since`.
   */
  pack: { name: string; offsetBytes: number; indexPath: string }
  /** The bundle has only what this commit does not lead to; absent where it is whole. */
  since?: string
  facts: SourceFacts
}

/** Bases a mirror keeps ready at most: the tasks of one repository mostly start from the same commit. */
const keptBundles = 2
const names = { bundle: 'base.bundle', index: 'base.idx', facts: 'base.json' } as const

export interface BaseBundleRequest {
  git: Git
  mirror: string
  commit: string
  /** Fingerprint of what else goes into the bundle: tags, and where a shallow history ends. */
  fingerprint: string
  /** A commit whose history the receiver has. */
  since?: string | undefined
  /** Where the bundle goes; the files belong to the caller. */
  directory: string
  signal: AbortSignal
  onProgress?: ((line: string) => void) | undefined
}

/**
 * Puts a bundle of the base into `directory`: the one made for the last task on the same commit where there is one. The
 * caller holds the lock of the mirror.
 */
export async function writeBaseBundle(request: BaseBundleRequest): Promise<BaseBundle> {
  const { since } = request
  const wanted = `2 ${request.commit} ${request.fingerprint}${since ? ` since ${since}` : ''}`
  const key = createHash('sha256').update(wanted).digest('hex').slice(0, 32)
  const cache = join(request.mirror, 'corral-bundles')
  const ready = join(cache, key)
  if (!(await isReady(ready))) {
    await makeBundle(request, cache, ready)
    await removeOthers(cache, key)
  }
  const now = new Date()
  await utimes(ready, now, now)
  const { pack, facts } = JSON.parse(await readFile(join(ready, names.facts), 'utf8')) as Stored
  // A part is not what the record of a task keeps as its base.
  const name = since ? 'since' : 'in'
  const bundlePath = join(request.directory, `${name}.bundle`)
  const indexPath = join(request.directory, `${name}.idx`)
  await linkOrCopy(join(ready, names.bundle), bundlePath)
  await linkOrCopy(join(ready, names.index), indexPath)
  return { bundlePath, pack: { ...pack, indexPath }, facts, ...(since ? { since } : {}) }
}

interface Stored {
  pack: { name: string; offsetBytes: number }
  facts: SourceFacts
}

/** Made beside its place and moved there whole, so that a crash leaves no half of it. */
async function makeBundle(request: BaseBundleRequest, cache: string, ready: string): Promise<void> {
  const { git, mirror, commit, signal } = request
  await mkdir(cache, { recursive: true, mode: 0o700 })
  for (const name of await readdir(cache)) if (name.startsWith('new-')) await rm(join(cache, name), { recursive: true })
  const work = await mkdtemp(join(cache, 'new-'))
  try {
    await git(['update-ref', baseRefOf(commit), commit], { cwd: mirror, signal })
    const refs = [`${commit} ${baseRefOf(commit)}`, ...(await tagsOf(git, mirror, commit, signal))]
    const name = await packOf(request, refs, work)
    const sha256 = commit.length === 64
    const signature = sha256 ? '# v3 git bundle\n@object-format=sha256\n' : '# v2 git bundle\n'
    const header = `${signature}${refs.join('\n')}\n\n`
    await writeFile(join(work, names.bundle), header, { mode: 0o600 })
    if (name === '') await writeFile(join(work, names.index), '', { mode: 0o600 })
    else {
      const packPath = join(work, `pack-${name}.pack`)
      const bundle = createWriteStream(join(work, names.bundle), { flags: 'a' })
      await pipeline(createReadStream(packPath), bundle, { signal })
      await rm(packPath)
      await rename(join(work, `pack-${name}.idx`), join(work, names.index))
    }
    const facts = await readSourceFacts(git, { mirror, commit, directory: work, signal })
    const stored: Stored = { pack: { name, offsetBytes: Buffer.byteLength(header) }, facts }
    await writeFile(join(work, names.facts), JSON.stringify(stored), { mode: 0o600 })
    await rm(ready, { recursive: true, force: true })
    await rename(work, ready)
  } catch (error) {
    await rm(work, { recursive: true, force: true })
    throw error
  }
}

/** Packs what the refs lead to, and `since` does not. Answers the name git gave the pack; empty where there is nothing. */
async function packOf(request: BaseBundleRequest, refs: readonly string[], work: string): Promise<string> {
  const wanted = join(work, 'wanted')
  const without = request.since ? [`^${request.since}`] : []
  await writeFile(wanted, `${[...refs.map((ref) => ref.slice(0, ref.indexOf(' '))), ...without].join('\n')}\n`)
  const stdin = await open(wanted, 'r')
  try {
    const args = ['pack-objects', '--revs', '--delta-base-offset', request.onProgress ? '--progress' : '--quiet']
    // What a partial mirror does not have is left out: the contents of the commit itself were brought before.
    const { isPartial } = await readMirrorState(request.mirror)
    if (isPartial) args.push('--missing=allow-any')
    const { stdout } = await request.git([...args, join(work, 'pack')], {
      cwd: request.mirror,
      stdin: stdin.fd,
      signal: request.signal,
      timeoutMs: 30 * 60_000,
      ...(request.onProgress ? { onStderr: request.onProgress } : {}),
    })
    return stdout.trim()
  } finally {
    await stdin.close()
    await rm(wanted, { force: true })
  }
}

/** Tags a bundle carries at most: the newest. */
const maxTags = 10_000

/** The tags in the history of a commit, so that `git describe` answers inside the sandbox as it does outside. */
async function tagsOf(git: Git, cwd: string, commit: string, signal: AbortSignal): Promise<string[]> {
  const args = ['for-each-ref', '--sort=-creatordate', `--merged=${commit}`, `--count=${maxTags}`]
  const { stdout } = await git([...args, '--format=%(objectname) %(refname)', 'refs/tags'], { cwd, signal })
  return stdout.split('\n').filter((line) => line !== '')
}

async function isReady(directory: string): Promise<boolean> {
  return stat(join(directory, names.facts)).then(
    () => true,
    () => false,
  )
}

async function removeOthers(cache: string, key: string): Promise<void> {
  const others: { name: string; usedMs: number }[] = []
  for (const name of await readdir(cache))
    if (name !== key) others.push({ name, usedMs: (await stat(join(cache, name))).mtimeMs })
  others.sort((a, b) => b.usedMs - a.usedMs)
  for (const { name } of others.slice(keptBundles - 1)) await rm(join(cache, name), { recursive: true, force: true })
}

/** One file under two names where the disk can; neither is ever changed. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await rm(to, { force: true })
  await link(from, to).catch(() => copyFile(from, to))
}
