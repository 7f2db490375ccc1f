import type { Git } from '../git/git.js'

/**
 * The text of a plain file at a commit; undefined where there is nothing. One that is larger than `maxBytes` answers with
 * its size alone, and what is there but no plain file with what it is.
 */
export async function readTextFile(
  git: Git,
  place: { mirror: string; commit: string; path: string; maxBytes: number; signal: AbortSignal },
): Promise<{ text: string } | { sizeBytes: number } | { other: string } | undefined> {
  const { mirror: cwd, commit, path, maxBytes, signal } = place
  const options = { cwd, signal, timeoutMs: 60_000 }
  const ls = (...args: string[]) => git(['ls-tree', '-z', '--full-tree', ...args], options)
  const { stdout: listed } = await ls('--long', commit, '--', path)
  const [, mode = '', oid = '', size] = /^(\d{6}) \w+ ([0-9a-f]+) +(\d+|-)\t/.exec(listed) ?? []
  if (!mode) {
    // A link on the way there leads somewhere in a checkout; git itself sees nothing behind it.
    const parents = parentsOf(path)
    const { stdout: above } = parents.length > 0 ? await ls(commit, '--', ...parents) : { stdout: '' }
    const [, link] = /(?:^|\0)120000 [^\t]*\t([^\0]*)/.exec(above) ?? []
    return link === undefined ? undefined : { other: `behind ${link}, which is a symbolic link` }
  }
  if (!mode.startsWith('100')) return { other: others[mode] ?? 'no file' }
  if (Number(size) > maxBytes) return { sizeBytes: Number(size) }
  const { stdout: text } = await git(['cat-file', 'blob', oid], { ...options, maxOutputBytes: maxBytes + 1 })
  return { text }
}

const others: Readonly<Record<string, string>> = {
  '120000': 'a symbolic link',
  '040000': 'a directory',
  '160000': 'a submodule',
}

/** `a` and `a/b` of `a/b/c`. */
function parentsOf(path: string): string[] {
  const parts = path.split('/')
  return parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join('/'))
}
