import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { byteRange } from './byte-range.js'
import { patchFiles } from './patch-files.js'

let directory: string
let patch: Buffer
const git = (...args: string[]): Buffer => execFileSync('git', args, { cwd: directory })
const put = (path: string, content: string | Buffer): void => writeFileSync(join(directory, path), content)

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-patch-'))
  git('init', '-q')
  git('config', 'user.name', 'T')
  git('config', 'user.email', 't@localhost')
  for (const name of ['edited', 'gone', 'old name', 'script', 'kind']) put(name, `${name}\n-- a line\n`)
  put('bytes', Buffer.from([0, 1, 2]))
  git('add', '.')
  git('commit', '-qm', 'base')
  put('edited', 'edited\n++ another\ndiff --git a/x b/x\n')
  unlinkSync(join(directory, 'gone'))
  renameSync(join(directory, 'old name'), join(directory, 'new\tnäme'))
  chmodSync(join(directory, 'script'), 0o755)
  unlinkSync(join(directory, 'kind'))
  symlinkSync('edited', join(directory, 'kind'))
  put('bytes', Buffer.from([9, 0, 9]))
  put('empty', '')
  put('a b/a b'.replace('/', '-'), 'one\n')
  git('add', '-A')
  git('commit', '-qm', 'work')
  patch = git('diff-tree', '-r', '-p', '--binary', '--full-index', '-M100%', 'HEAD^', 'HEAD')
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

async function* cut(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

it.each([1, 7, 1 << 20])('lists what git changed, however the patch is cut (%d bytes)', async (size) => {
  const files = []
  for await (const { offset: _, patch_bytes: __, ...file } of patchFiles(cut(patch, size))) files.push(file)
  const plain = { additions: 0, deletions: 0, binary: false }
  expect(files).toEqual([
    { ...plain, path: 'a b-a b', status: 'added', additions: 1 },
    { ...plain, path: 'bytes', status: 'modified', binary: true },
    { ...plain, path: 'edited', status: 'modified', additions: 2, deletions: 1 },
    { ...plain, path: 'empty', status: 'added' },
    { ...plain, path: 'gone', status: 'deleted', deletions: 2 },
    { ...plain, path: 'kind', status: 'type_changed', additions: 1, deletions: 2 },
    { ...plain, path: 'new\tnäme', previous_path: 'old name', status: 'renamed' },
    { ...plain, path: 'script', status: 'modified' },
  ])
})

it('the parts of all files are the whole patch', async () => {
  const parts: Buffer[] = []
  for await (const { offset, patch_bytes } of patchFiles(cut(patch, 100)))
    for await (const part of byteRange(cut(patch, 33), { offset, limit: patch_bytes })) parts.push(Buffer.from(part))
  expect(Buffer.concat(parts).equals(patch)).toBe(true)
})

it('a change without a patch has no files', async () => {
  for await (const file of patchFiles(cut(Buffer.alloc(0), 1))) expect(file).toBeUndefined()
})
