import type { Git } from '../git/git.js'

/** Plain files of a commit, by path; those that are not there or larger than `maxBytes` are left out. */
export async function readTextFiles(
  git: Git,
  place: { mirror: string; commit: string; paths: readonly string[]; maxBytes: number; signal: AbortSignal },
): Promise<{ path: string; text: string }[]> {
  const { mirror: cwd, commit, paths, maxBytes, signal } = place
  const options = { cwd, signal, timeoutMs: 60_000 }
  const { stdout } = await git(['ls-tree', '-z', '--long', '--full-tree', commit, '--', ...paths], options)
  const listed = new Map(
    stdout.split('\0').flatMap((line): [string, string][] => {
      const [, oid = '', size, path = ''] = /^100\d{3} blob ([0-9a-f]+) +(\d+)\t(.*)$/s.exec(line) ?? []
      return oid === '' || Number(size) > maxBytes ? [] : [[path, oid]]
    }),
  )
  const files: { path: string; text: string }[] = []
  for (const path of paths) {
    const oid = listed.get(path)
    if (oid === undefined) continue
    const { stdout: text } = await git(['cat-file', 'blob', oid], { ...options, maxOutputBytes: maxBytes + 1 })
    files.push({ path, text })
  }
  return files
}
