import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

const packages = readdirSync(join(root, 'packages'))

/** Which folder directly below `src` imports which. A file in `src` itself counts as a folder of its own. */
function folderImports(folder: string): Map<string, Set<string>> {
  const source = join(root, 'packages', folder, 'src')
  const files = readdirSync(source, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && /(?<!\.test|\.test-suite)\.tsx?$/.test(entry.name))
    .map((entry) => relative(source, join(entry.parentPath ?? entry.path, entry.name)))
  const top = (file: string): string => file.split(sep)[0] ?? file
  const imports = new Map(files.map((file) => [top(file), new Set<string>()]))
  for (const file of files) {
    const text = readFileSync(join(source, file), 'utf8')
    for (const [, specifier = ''] of text.matchAll(/\b(?:from|import\() ?'(\.[^']+)\.js'/g)) {
      const path = normalize(join(dirname(file), specifier))
      const target = top(files.includes(`${path}.tsx`) ? `${path}.tsx` : `${path}.ts`)
      if (target !== top(file)) imports.get(top(file))?.add(target)
    }
  }
  return imports
}

/** One way from a folder back to itself, or undefined. */
function cycleFrom(start: string, imports: Map<string, Set<string>>): string[] | undefined {
  const seen = new Set<string>()
  const visit = (folder: string, path: string[]): string[] | undefined => {
    for (const next of imports.get(folder) ?? []) {
      if (next === start) return [...path, next]
      if (seen.has(next)) continue
      seen.add(next)
      const found = visit(next, [...path, next])
      if (found) return found
    }
    return undefined
  }
  return visit(start, [start])
}

describe.each(packages)('the folders of packages/%s', (name) => {
  const imports = folderImports(name)

  it('import each other in one direction', () => {
    const cycles = [...imports.keys()].flatMap((folder) => cycleFrom(folder, imports)?.join(' → ') ?? [])
    expect(cycles).toEqual([])
  })

  it('are read by this test at all', () => {
    expect([...imports.values()].reduce((sum, targets) => sum + targets.size, 0)).toBeGreaterThan(3)
  })
})

it('only the folders of tiers, and who chooses one, know tiers by name', () => {
  const files = ['node', 'cli'].flatMap((name) => {
    const source = join(root, 'packages', name, 'src')
    return readdirSync(source, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /(?<!\.test|\.test-suite)\.ts$/.test(entry.name))
      .map((entry) => relative(root, join(entry.parentPath ?? entry.path, entry.name)))
  })
  const naming = files.filter((file) =>
    /[tT]ier\b[^\n]{0,12}[!=]== '|isolation [!=]== '(?:process|bubblewrap)/.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  )
  expect(naming).toEqual([])
})
