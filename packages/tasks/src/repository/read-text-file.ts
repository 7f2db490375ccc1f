import type { Git } from '../git/git.js'

/**
 * The text of a plain file at a commit; undefined where there is none. One that is larger than `maxBytes` answers with
 * its size alone.
 */
export async function readTextFile(
  git: Git,
  place: { mirror: string; commit: string; path: string; maxBytes: number; signal: AbortSignal },
): Promise<{ text: string } | { sizeBytes: number } | undefined> {
  const { mirror: cwd, commit, path, maxBytes, signal } = place
  const options = { cwd, signal, timeoutMs: 60_000 }
  const { stdout: listed } = await git(['ls-tree', '-z', '--long', '--full-tree', commit, '--', path], options)
  const [, oid, size] = /^100\d{3} blob ([0-9a-f]+) +(\d+)\t/.exec(listed) ?? []
  if (!oid) return undefined
  if (Number(size) > maxBytes) return { sizeBytes: Number(size) }
  const { stdout: text } = await git(['cat-file', 'blob', oid], { ...options, maxOutputBytes: maxBytes + 1 })
  return { text }
}
