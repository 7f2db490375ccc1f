import { open, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TaskWarning, taskWarning } from '@corral/protocol'
import type { Git } from '../git/git.js'
import { type LfsPointer, parsePointer, pointerBytes } from './lfs-pointer.js'

/** What a commit needs beyond its own objects. */
export interface SourceFacts {
  submodules: Submodule[]
  /** Names of clean and smudge filters its attributes name, Git LFS's own not among them. */
  filters: string[]
  /** Whether its attributes send files to Git LFS. */
  usesLfs: boolean
  lfs: (LfsPointer & { path: string })[]
}

export interface Submodule {
  /** Its name in .gitmodules, which is where git keeps its repository. */
  name: string
  path: string
  url: string
  commit: string
}

/** What of it a task's owner should know: the sandbox does not have it. */
export function sourceWarnings(
  { submodules, filters, lfs }: SourceFacts,
  brought: { hasSubmodules: boolean; hasLfs: boolean; isPartial: boolean },
): TaskWarning[] {
  const warnings: TaskWarning[] = []
  if (submodules.length > 0 && !brought.hasSubmodules)
    warnings.push(taskWarning('SubmodulesNotFetched', { detail: some(submodules.map(({ path }) => path)) }))
  if (lfs.length > 0 && !brought.hasLfs)
    warnings.push(taskWarning('LfsNotFetched', { detail: some(lfs.map(({ path }) => path)) }))
  if (brought.isPartial) warnings.push(taskWarning('HistoryPartial'))
  if (filters.length > 0) warnings.push(taskWarning('FiltersNotApplied', { detail: some(filters) }))
  return warnings
}

const some = (names: readonly string[]): string =>
  names.length <= 5 ? names.join(', ') : `${names.slice(0, 5).join(', ')} and ${names.length - 5} more`

interface Entry {
  mode: string
  oid: string
  size: number
  path: string
}

const maxOutputBytes = 1024 ** 3

/** Reads the trees of a commit once; contents only where a path or a size says that they matter. */
export async function readSourceFacts(
  git: Git,
  place: { mirror: string; commit: string; directory: string; signal: AbortSignal },
): Promise<SourceFacts> {
  const { mirror: cwd, commit, signal } = place
  const args = ['ls-tree', '-r', '-z', '--long', '--full-tree', commit]
  const { stdout } = await git(args, { cwd, signal, timeoutMs: 300_000, maxOutputBytes })
  const entries = stdout.split('\0').flatMap(parseEntry)
  const attributes = entries.filter(({ path, size }) => /(^|\/)\.gitattributes$/.test(path) && size < 1024 * 1024)
  const texts = await readBlobs(git, { ...place, oids: attributes.map(({ oid }) => oid) })
  const named = new Set([...texts.values()].flatMap((text) => filtersIn(text.toString('latin1'))))
  const usesLfs = named.delete('lfs')
  return {
    submodules: await readSubmodules(git, entries, place),
    filters: [...named].sort().slice(0, 50),
    usesLfs,
    lfs: usesLfs ? await readPointers(git, entries, place) : [],
  }
}

function parseEntry(line: string): Entry[] {
  const match = /^(\d+) \w+ ([0-9a-f]+) +(\d+|-)\t(.*)$/s.exec(line)
  return match ? [{ mode: match[1]!, oid: match[2]!, size: Number(match[3]) || 0, path: match[4]! }] : []
}

/** `pattern … filter=NAME`; a line that begins with `#` is a comment. */
export function filtersIn(attributes: string): string[] {
  return attributes
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'))
    .flatMap((line) => [...line.matchAll(/\sfilter=([^\s]+)/g)].map(([, name]) => name!))
}

async function readSubmodules(
  git: Git,
  entries: readonly Entry[],
  { mirror: cwd, commit, signal }: { mirror: string; commit: string; signal: AbortSignal },
): Promise<Submodule[]> {
  const links = new Map(entries.filter(({ mode }) => mode === '160000').map(({ path, oid }) => [path, oid]))
  if (links.size === 0 || !entries.some(({ path }) => path === '.gitmodules')) return []
  const args = ['config', '--blob', `${commit}:.gitmodules`, '--null', '--list']
  // What git cannot read as configuration names no submodule.
  const { stdout } = await git(args, { cwd, signal }).catch(() => ({ stdout: '' }))
  const settings = new Map<string, { path?: string; url?: string }>()
  for (const setting of stdout.split('\0')) {
    const match = /^submodule\.(.+)\.(path|url)\n(.*)$/s.exec(setting)
    if (match) settings.set(match[1]!, { ...settings.get(match[1]!), [match[2]!]: match[3]! })
  }
  return [...settings].flatMap(([name, { path, url }]) => {
    const oid = path === undefined ? undefined : links.get(path)
    return isModuleName(name) && path && url && oid ? [{ name, path, url, commit: oid }] : []
  })
}

/** git's own rule for names of submodules: they are directories below `.git/modules`. */
const isModuleName = (name: string): boolean => name !== '' && !name.split(/[/\\]/).includes('..')

async function readPointers(
  git: Git,
  entries: readonly Entry[],
  place: { mirror: string; directory: string; signal: AbortSignal },
): Promise<SourceFacts['lfs']> {
  const small = entries.filter(({ mode, size }) => mode.startsWith('100') && pointerBytes.mayBe(size))
  const texts = await readBlobs(git, { ...place, oids: small.map(({ oid }) => oid) })
  return small.flatMap(({ oid, path }) => {
    const pointer = parsePointer(texts.get(oid)?.toString('latin1') ?? '')
    return pointer ? [{ ...pointer, path }] : []
  })
}

/** Contents by object id, all from one git. */
async function readBlobs(
  git: Git,
  place: { mirror: string; directory: string; oids: readonly string[]; signal: AbortSignal },
): Promise<Map<string, Buffer>> {
  const blobs = new Map<string, Buffer>()
  if (place.oids.length === 0) return blobs
  const [asked, answered] = [join(place.directory, 'asked'), join(place.directory, 'answered')]
  await writeFile(asked, `${[...new Set(place.oids)].join('\n')}\n`)
  const stdin = await open(asked, 'r')
  const stdout = await open(answered, 'w+')
  try {
    const options = { cwd: place.mirror, stdin: stdin.fd, stdout: stdout.fd, signal: place.signal, timeoutMs: 300_000 }
    await git(['cat-file', '--batch'], options)
    const { size: length } = await stdout.stat()
    const all = Buffer.alloc(length)
    await stdout.read(all, 0, length, 0)
    for (let position = 0; position < length; ) {
      const end = all.indexOf(10, position)
      const [oid = '', , size] = all.toString('latin1', position, end).split(' ')
      if (size === undefined || !/^\d+$/.test(size)) {
        position = end + 1 // `<id> missing`: no content follows
        continue
      }
      blobs.set(oid, all.subarray(end + 1, end + 1 + Number(size)))
      position = end + 2 + Number(size)
    }
    return blobs
  } finally {
    await stdin.close()
    await stdout.close()
    for (const path of [asked, answered]) await rm(path, { force: true })
  }
}
