import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const folders = readdirSync(join(root, 'packages')).filter((name) =>
  existsSync(join(root, 'packages', name, 'package.json')),
)
const manifest = (
  folder: string,
): { name: string; dependencies?: Record<string, string>; peerDependencies?: Record<string, string> } =>
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

function sources(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
}

/** Packages, ours and others', that the code of a package imports; its tests do not count. */
function importedBy(folder: string): string[] {
  const specifiers = sources(join(root, 'packages', folder, 'src'))
    .filter((path) => !/\.test(-suite)?\.tsx?$/.test(path))
    .flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/(?:^|\s)from '([^'./][^']*)'$|\bimport\('([^'./][^']*)'\)/gm)].map(
        ([, fixed, dynamic]) => fixed ?? dynamic ?? '',
      ),
    )
  const names = specifiers.map((specifier) =>
    specifier
      .split('/')
      .slice(0, specifier.startsWith('@') ? 2 : 1)
      .join('/'),
  )
  return [...new Set(names)].filter((name) => !name.startsWith('node:') && name !== manifest(folder).name)
}

const ours = (names: string[]): string[] => names.flatMap((name) => folderOf.get(name) ?? []).sort()

describe('the package table', () => {
  it('has a row for every package and no other', () => {
    expect([...documented().keys()].sort()).toEqual([...folders].sort())
  })

  it.each(folders)('S0-D1 S0-I3: the row of %s names what its package.json names', (folder) => {
    expect([...(documented().get(folder) ?? [])].sort()).toEqual(ours(Object.keys(manifest(folder).dependencies ?? {})))
  })

  it.each(folders)('the row of %s names what its code imports', (folder) => {
    expect([...(documented().get(folder) ?? [])].sort()).toEqual(ours(importedBy(folder)))
  })

  it.each(folders)('S2-I1: %s imports only packages its package.json names', (folder) => {
    const { dependencies = {}, peerDependencies = {} } = manifest(folder)
    const named = { ...dependencies, ...peerDependencies }
    expect(importedBy(folder).filter((name) => !(name in named))).toEqual([])
  })

  it('has no way back: a row names only rows above it', () => {
    const above = new Set<string>()
    const back = [...documented()].flatMap(([name, imports]) => {
      const wrong = imports.filter((other) => !above.has(other)).map((other) => `${name} → ${other}`)
      above.add(name)
      return wrong
    })
    expect(back).toEqual([])
  })

  it('ports stays without dependencies, so that the daemon may use it in a process of 128 Mi', () => {
    expect(manifest('ports').dependencies ?? {}).toEqual({})
  })
})
