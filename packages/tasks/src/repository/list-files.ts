import type { Git } from '../git/git.js'

/** A file of the repository, by the id of its content. */
export interface KeyFile {
  path: string
  oid: string
}

/** Files of a commit whose paths are wanted, by the ids of their contents; links and submodules are none. */
export async function listFiles(
  git: Git,
  place: { mirror: string; commit: string; isWanted: (path: string) => boolean; signal: AbortSignal },
): Promise<KeyFile[]> {
  const { mirror: cwd, commit, isWanted, signal } = place
  const { stdout } = await git(['ls-tree', '-r', '-z', '--full-tree', commit], {
    cwd,
    signal,
    timeoutMs: 60_000,
    maxOutputBytes: 256 * 1024 * 1024,
  })
  return stdout.split('\0').flatMap((line) => {
    const [, oid, path] = /^100\d{3} blob ([0-9a-f]+)\t(.*)$/s.exec(line) ?? []
    return oid !== undefined && path !== undefined && isWanted(path) ? [{ path, oid }] : []
  })
}
