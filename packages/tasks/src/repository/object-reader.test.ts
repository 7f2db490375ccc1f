import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import type { GitConversation } from '../git/confined-git.js'
import { ObjectReader } from './object-reader.js'

const oid = 'ab'.repeat(20)
const row = (mode: string, name: string, bytes = 20): Buffer =>
  Buffer.concat([Buffer.from(`${mode} ${name}\0`, 'latin1'), Buffer.alloc(bytes, 0xab)])

/** Reads one object of a `git cat-file --batch` that answers these pieces. */
async function read(...pieces: (string | Buffer)[]) {
  const stdout = new PassThrough()
  const git: GitConversation = {
    stdin: new PassThrough(),
    stdout,
    ended: Promise.resolve(),
    close: async () => {},
  }
  const reader = new ObjectReader(git, { maxTreeBytes: 200 })
  for (const piece of pieces) stdout.write(piece)
  stdout.end()
  return reader.tree('HEAD^{tree}')
}
const tree = (content: Buffer): [string, Buffer, string] => [`${oid} tree ${content.length}\n`, content, '\n']

it('tells directories, submodules and files apart', async () => {
  const content = [row('40000', 'd'), row('160000', 's'), row('100644', 'f'), row('120000', 'l')]
  const entries = await read(...tree(Buffer.concat(content)))
  expect(entries).toMatchObject([
    { name: 'd', kind: 'tree', oid, identity: `40000 ${oid}` },
    { name: 's', kind: 'submodule' },
    { name: 'f', kind: 'file' },
    { name: 'l', kind: 'file' },
  ])
})

it.each([
  { what: 'an id that is cut off', content: row('100644', 'f', 19) },
  { what: 'a name without an end', content: Buffer.from('100644 file') },
  { what: 'no name at all', content: Buffer.from('100644') },
  { what: 'a damaged entry after a good one', content: Buffer.concat([row('100644', 'f'), row('100644', 'g', 3)]) },
])('a result whose directory has $what is not taken', async ({ content }) => {
  expect(await read(...tree(content))).toBe('a directory is damaged')
})

it.each([
  { what: 'a file', pieces: [`${oid} blob 3\nabc\n`], says: 'HEAD^{tree} is blob where a directory belongs' },
  { what: 'nothing', pieces: ['HEAD^{tree} missing\n'], says: 'HEAD^{tree} is missing where a directory belongs' },
  { what: 'too large', pieces: [`${oid} tree 201\n`], says: 'a directory takes 201 bytes, more than 200' },
])('what is $what where a directory belongs is named', async ({ pieces, says }) => {
  expect(await read(...pieces)).toBe(says)
})

it('an answer may come in any pieces, with a name in any encoding', async () => {
  const bytes = Buffer.concat(tree(row('100644', 'caf\xe9')).map((piece) => Buffer.from(piece)))
  const pieces = [...bytes].map((byte) => Buffer.from([byte]))
  expect(await read(...pieces)).toMatchObject([{ name: 'caf\xe9', kind: 'file', oid }])
})

it('a git that ends before it answered is an error', async () => {
  await expect(read(`${oid} tree 40\n`, Buffer.alloc(10))).rejects.toThrow('git cat-file ended before it answered')
})
