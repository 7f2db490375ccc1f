import { expect, it } from 'vitest'
import type { TreeEntry } from './object-reader.js'
import { type WalkLimits, walkChanges } from './tree-walk.js'

const limits: WalkLimits = { changedFiles: 3, pathBytes: 20, pathDepth: 2 }
const entry = (kind: TreeEntry['kind'], name: string, oid: string): TreeEntry => ({
  ...{ kind, name, oid, identity: `${kind} ${oid}` },
})
const file = (name: string, oid = name): TreeEntry => entry('file', name, oid)
const folder = (name: string, oid: string): TreeEntry => entry('tree', name, oid)

/** Compares the trees of two commits; both are among these by name. */
const walk = (trees: Record<string, TreeEntry[]>) =>
  walkChanges(
    { tree: async (id) => trees[id.replace('^{tree}', '')] ?? `${id} is no directory` },
    'before',
    'after',
    limits,
  )
const files = (count: number, oid = ''): TreeEntry[] =>
  Array.from({ length: count }, (_, index) => file(`f${index}`, `${oid}${index}`))

it.each([
  { what: 'just as many new files as allowed', before: [], after: files(3), found: { files: 3 } },
  { what: 'one new file more', before: [], after: files(4), found: { exceeded: 'changedFiles' } },
  { what: 'just as many removed files', before: files(3), after: [], found: { files: 3 } },
  { what: 'one removed file more', before: files(4), after: [], found: { exceeded: 'changedFiles' } },
  { what: 'just as many changed files', before: files(3, 'a'), after: files(3, 'b'), found: { files: 3 } },
  { what: 'one changed file more', before: files(4, 'a'), after: files(4, 'b'), found: { exceeded: 'changedFiles' } },
  { what: 'any number of files that stayed', before: files(9), after: files(9), found: { files: 0 } },
])('$what: $found', async ({ before, after, found }) => {
  expect(await walk({ before, after })).toMatchObject(found)
})

it('directories without files count too: else a few bytes would keep it busy for ever', async () => {
  const after = Array.from({ length: 4 }, (_, index) => folder(`d${index}`, 'empty'))
  expect(await walk({ before: [], after, empty: [] })).toEqual({ exceeded: 'changedFiles' })
  expect(await walk({ before: [], after: after.slice(1), empty: [] })).toMatchObject({ files: 0 })
})

it('a directory that is the same before and after is not read', async () => {
  const same = [folder('same', 'not-there')]
  expect(await walk({ before: same, after: [...same, file('new')] })).toEqual({ blobs: new Set(['new']), files: 1 })
})

it.each([
  { depth: 2, found: { files: 1 } },
  { depth: 3, found: { exceeded: 'pathDepth' } },
])('directories $depth deep: $found', async ({ depth, found }) => {
  const trees: Record<string, TreeEntry[]> = { before: [], [`level${depth}`]: [file('x')] }
  for (let level = depth - 1; level >= 0; level--)
    trees[level === 0 ? 'after' : `level${level}`] = [folder('d', `level${level + 1}`)]
  expect(await walk(trees)).toMatchObject(found)
})

it.each([
  { bytes: 20, found: { files: 1 } },
  { bytes: 21, found: { exceeded: 'pathBytes' } },
])('a path of $bytes bytes, its slashes counted: $found', async ({ bytes, found }) => {
  const trees = { before: [], after: [folder('1234', 'inner')], inner: [file('n'.repeat(bytes - 6), 'x')] }
  expect(await walk(trees)).toMatchObject(found)
})

it('only new contents are weighed: not those that went, not submodules', async () => {
  const after = [file('new'), entry('submodule', 'sub', 'commit')]
  const found = await walk({ before: [file('old')], after })
  expect(found).toEqual({ blobs: new Set(['new']), files: 3 })
})

it('a directory that cannot be read is told in its own words', async () => {
  expect(await walk({ before: [], after: [folder('d', 'broken')] })).toEqual({ broken: 'broken is no directory' })
})
