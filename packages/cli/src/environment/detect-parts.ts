import { type Dirent, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type DetectedSetup, detectSetup, toolVersionFiles } from './detect-setup.js'
import { beginningOf } from './local-environment.js'

/** A directory of a monorepo with a set-up of its own. */
export interface DetectedPart {
  /** As a task names it. */
  name: string
  /** Below the root. */
  path: string
  detected: DetectedSetup[]
}

const maxParts = 30
const notParts =
  /^(\.|node_modules$|vendor$|third_party$|dist$|build$|target$|examples?$|docs?$|fixtures?$|testdata$|tests?$)/

/** Directories of the root, or of directories without a set-up themselves, such as `services/api`. */
export function detectParts(root: string): DetectedPart[] {
  const found = directoriesIn(root, '').flatMap((path) => {
    const own = detectIn(root, path)
    return own.length > 0 ? own : directoriesIn(root, path).flatMap((inner) => detectIn(root, inner))
  })
  const taken = new Set<string>()
  return found.slice(0, maxParts).flatMap((part) => {
    const name = [part.name, nameOf(part.path)].find((each) => /^[a-z]/.test(each) && !taken.has(each))
    if (name === undefined) return []
    taken.add(name)
    return [{ ...part, name }]
  })
}

const lockFiles = /(^|[-.])lock(\.|b$|$)|^(requirements\.txt|go\.mod|pom\.xml)$/

/**
 * Lock files below a root that has a set-up of its own, such as `web/package-lock.json` beside `go.mod`: that set-up does not read
 * them. Members of a workspace have none, or the root's kind.
 */
export function nestedLockFiles(root: string, own: readonly DetectedSetup[]): string[] {
  const known = new Set(own.map(({ because }) => because))
  return detectParts(root).flatMap(({ path, detected }) =>
    detected.flatMap(({ because }) => (lockFiles.test(because) && !known.has(because) ? [`${path}/${because}`] : [])),
  )
}

function detectIn(root: string, path: string): DetectedPart[] {
  const names = new Set(entriesOf(join(root, path)).map(({ name }) => name))
  // Empty, or of another account, such as the data of a database: nothing in it can be looked at either.
  if (names.size === 0) return []
  // A version file of the root counts for its parts: a version written for one of them would win over it.
  for (const file of ['rust-toolchain.toml', 'rust-toolchain'])
    if (beginningOf(join(root, file)) !== undefined) names.add(file)
  const read = (file: string): string | undefined =>
    beginningOf(join(root, path, file)) ?? (toolVersionFiles.includes(file) ? beginningOf(join(root, file)) : undefined)
  const detected = detectSetup(names, read)
  return detected.length > 0 ? [{ name: nameOf(path.split('/').at(-1) ?? path), path, detected }] : []
}

function directoriesIn(root: string, path: string): string[] {
  return entriesOf(join(root, path))
    .filter((entry) => entry.isDirectory() && !notParts.test(entry.name))
    .map(({ name }) => (path ? `${path}/${name}` : name))
    .sort()
}

/** One that cannot be read has no parts. */
function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
}

function nameOf(path: string): string {
  return path
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 31)
}
