import { lstat, readlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { inside } from './unpack-layer.js'

const programs = ['usr/local/bin', 'usr/bin', 'bin']
const libraries = [
  ...['usr/lib64', 'lib64', 'usr/lib', 'lib'],
  ...['x86_64-linux-gnu', 'aarch64-linux-gnu'].flatMap((triplet) => [`usr/lib/${triplet}`, `lib/${triplet}`]),
]

/** Without the first three nothing is checked out, without the libraries neither the daemon nor an agent starts. */
const needs: readonly { what: string; names: readonly string[]; places: readonly string[] }[] = [
  { what: 'bash', names: ['bash'], places: programs },
  { what: 'git', names: ['git'], places: programs },
  { what: 'coreutils', names: ['mkdir'], places: programs },
  { what: 'glibc', names: ['libc.so.6'], places: libraries },
  { what: 'libstdc++', names: ['libstdc++.so.6'], places: libraries },
]

/** What the sandbox of a task needs and this root file system does not have, by the names of Debian's packages or nearly so. */
export async function lackingForTasks(root: string): Promise<string[]> {
  const lacking: string[] = []
  for (const { what, names, places } of needs) {
    const paths = places.flatMap((place) => names.map((name) => join(place, name)))
    const found = await Promise.all(paths.map((path) => isFileOf(root, path)))
    if (!found.includes(true)) lacking.push(what)
  }
  return lacking
}

/** Links are followed as if `root` were `/`. */
async function isFileOf(root: string, path: string, links = 0): Promise<boolean> {
  try {
    const at = join(await inside(root, dirname(path), { create: false }), basename(path))
    const there = await lstat(at)
    if (!there.isSymbolicLink()) return there.isFile()
    const target = await readlink(at)
    return (
      links < 10 && (await isFileOf(root, target.startsWith('/') ? target : join(dirname(path), target), links + 1))
    )
  } catch {
    // Neither the directory nor the file: not there.
    return false
  }
}
