import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const folders = readdirSync(join(root, 'packages')).filter((name) =>
  existsSync(join(root, 'packages', name, 'package.json')),
)
const manifest = (folder: string): { name: string; dependencies?: Record<string, string> } =>
  JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8'))
const folderOf = new Map(folders.map((folder) => [manifest(folder).name, folder]))

/** The table of ARCHITECTURE.md: package → packages its row names. */
function documented(): Map<string, string[]> {
  const rows = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').matchAll(/^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$/gm)
  return new Map(
    [...rows].map(([, name = '', imports = '']) => [
      name,
      [...imports.matchAll(/`(\w+)`/g)].map((match) => match[1] ?? ''),
    ]),
  )
}

function closure(name: string, table: Map<string, string[]>, seen = new Set<string>()): Set<string> {
  for (const next of table.get(name) ?? []) {
    if (seen.has(next)) continue
    seen.add(next)
    closure(next, table, seen)
  }
  return seen
}

function sources(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
}

describe('the package table', () => {
  it('has a row for every package and no other', () => {
    expect([...documented().keys()].sort()).toEqual([...folders].sort())
  })

  it.each(folders)('S0-D1 S0-I3: %s depends on nothing beyond what its row leads to', (folder) => {
    const allowed = closure(folder, documented())
    const used = Object.keys(manifest(folder).dependencies ?? {}).flatMap((name) => folderOf.get(name) ?? [])
    expect(used.filter((name) => !allowed.has(name))).toEqual([])
  })

  it.each(folders)('S2-I1: %s imports only packages its package.json names', (folder) => {
    const { dependencies = {}, name: own } = manifest(folder)
    const foreign = sources(join(root, 'packages', folder, 'src'))
      .filter((path) => !/\.test(-suite)?\.ts$/.test(path))
      .flatMap((path) => {
        const imports = readFileSync(path, 'utf8').matchAll(
          /(?:^|\s)from '([^'./][^']*)'$|\bimport\('([^'./][^']*)'\)/gm,
        )
        return [...imports]
          .map(([, fixed, dynamic]) => fixed ?? dynamic ?? '')
          .map((specifier) =>
            specifier
              .split('/')
              .slice(0, specifier.startsWith('@') ? 2 : 1)
              .join('/'),
          )
      })
      .filter((name) => !name.startsWith('node:') && name !== own && !(name in dependencies))
    expect([...new Set(foreign)]).toEqual([])
  })

  it('has no way back: no package leads to itself', () => {
    const table = documented()
    expect(folders.filter((folder) => closure(folder, table).has(folder))).toEqual([])
  })
})
