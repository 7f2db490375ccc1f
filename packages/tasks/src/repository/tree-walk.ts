import type { ObjectReader, TreeEntry } from './object-reader.js'

export interface WalkLimits {
  /** Files and directories that differ. */
  changedFiles: number
  /** Bytes of one path. */
  pathBytes: number
  /** Directories inside each other. */
  pathDepth: number
}

/** Entries of directories that may still be read, over several walks. */
export interface ReadBudget {
  entries: number
}

/** What a bounded walk found: the new blobs, or which limit stopped it. */
export type WalkResult =
  | { blobs: Set<string>; files: number }
  | { exceeded: keyof WalkLimits | 'historyEntries' }
  | { broken: string }

interface Pair {
  before: string | undefined
  after: string | undefined
  pathBytes: number
  depth: number
}

/**
 * Compares the trees of two commits, or of a first one with none, directory by directory and stops at the first limit that is passed. git's own diff makes the whole
 * list before it prints the first line: trees that contain each other ten times over need ten times the memory per
 * level there, and nothing but the time up to the limit here.
 */
export async function walkChanges(
  reader: Pick<ObjectReader, 'tree'>,
  before: string | undefined,
  after: string,
  limits: WalkLimits,
  budget: ReadBudget = { entries: Number.POSITIVE_INFINITY },
): Promise<WalkResult> {
  const blobs = new Set<string>()
  let files = 0
  let directories = 0
  const waiting: Pair[] = [{ before: before && `${before}^{tree}`, after: `${after}^{tree}`, pathBytes: 0, depth: 0 }]
  for (let pair = waiting.pop(); pair; pair = waiting.pop()) {
    const old = pair.before === undefined ? [] : await reader.tree(pair.before)
    const now = pair.after === undefined ? [] : await reader.tree(pair.after)
    if (typeof old === 'string') return { broken: old }
    if (typeof now === 'string') return { broken: now }
    // One more, so that directories without entries count as well.
    budget.entries -= old.length + now.length + 1
    if (budget.entries < 0) return { exceeded: 'historyEntries' }
    for (const [was, is] of differing(old, now)) {
      const pathBytes = pair.pathBytes + 1 + ((is ?? was)?.name.length ?? 0)
      if (pathBytes > limits.pathBytes) return { exceeded: 'pathBytes' }
      for (const entry of [was, is]) if (entry && entry.kind !== 'tree') files += 1
      if (was && is && was.kind !== 'tree' && is.kind !== 'tree') files -= 1 // one file that changed
      if (is?.kind === 'file') blobs.add(is.oid)
      const subtrees = { before: treeOf(was), after: treeOf(is) }
      if (subtrees.before !== undefined || subtrees.after !== undefined) {
        if (pair.depth >= limits.pathDepth) return { exceeded: 'pathDepth' }
        directories += 1
        waiting.push({ ...subtrees, pathBytes, depth: pair.depth + 1 })
      }
      if (files > limits.changedFiles || directories > limits.changedFiles) return { exceeded: 'changedFiles' }
    }
  }
  return { blobs, files }
}

const treeOf = (entry: TreeEntry | undefined): string | undefined => (entry?.kind === 'tree' ? entry.oid : undefined)

/** Entries that are not the same on both sides, as pairs by name. */
function* differing(
  old: readonly TreeEntry[],
  now: readonly TreeEntry[],
): Iterable<[TreeEntry | undefined, TreeEntry | undefined]> {
  const before = new Map(old.map((entry) => [entry.name, entry]))
  for (const entry of now) {
    const was = before.get(entry.name)
    before.delete(entry.name)
    if (was?.identity !== entry.identity) yield [was, entry]
  }
  for (const was of before.values()) yield [was, undefined]
}
