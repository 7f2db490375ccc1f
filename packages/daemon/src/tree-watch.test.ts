import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { putFile } from './file-routes.js'
import { type TreeWatch, watchTree } from './tree-watch.js'

let root: string
let seen: string[]
let watched: TreeWatch | undefined
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'corral-watch-'))
  seen = []
})
afterEach(async () => {
  watched?.close()
  await rm(root, { recursive: true, force: true })
})

const start = async (maxDirectories?: number): Promise<void> => {
  watched = await watchTree(root, {
    onChange: (type, path) => seen.push(`${type} ${path}`),
    onError: (error) => seen.push(`failed ${String(error)}`),
    signal: new AbortController().signal,
    ...(maxDirectories === undefined ? {} : { maxDirectories }),
  })
}
const at = (path: string): string => join(root, path)

it.each<{ when: string; before?: string[]; change: () => Promise<unknown>; tells: string[] }>([
  {
    when: 'a file comes deep inside',
    before: ['a/b/c'],
    change: () => writeFile(at('a/b/c/new'), 'x'),
    tells: ['created a/b/c/new'],
  },
  {
    when: 'a whole tree comes',
    change: async () => {
      await mkdir(at('x/y'), { recursive: true })
      await writeFile(at('x/y/z'), '1')
    },
    tells: ['created x', 'created x/y', 'created x/y/z'],
  },
  {
    when: 'a directory is moved, and something is written in it then',
    before: ['old/in'],
    change: async () => {
      await rename(at('old'), at('new'))
      await expect.poll(() => seen).toContain('created new/in')
      await writeFile(at('new/in/file'), 'x')
    },
    tells: ['deleted old', 'created new', 'created new/in', 'created new/in/file'],
  },
  {
    when: 'a directory goes',
    before: ['gone/below'],
    change: () => rm(at('gone'), { recursive: true }),
    tells: ['deleted gone/below', 'deleted gone'],
  },
  {
    when: 'a directory holds one of its own name that goes',
    before: ['same/same'],
    change: () => rm(at('same/same'), { recursive: true }),
    tells: ['deleted same/same'],
  },
])('when $when it tells so', async ({ before = [], change, tells }) => {
  for (const path of before) await mkdir(at(path), { recursive: true })
  await start()
  await change()
  await expect.poll(() => tells.filter((line) => !seen.includes(line))).toEqual([])
  const bogus = seen.filter((line) => /(^|[ /])(\w+)\/\2$/.test(line) && !tells.includes(line))
  expect(bogus).toEqual([])
})

it('follows no link out of the tree', async () => {
  const outside = await mkdtemp(join(tmpdir(), 'corral-outside-'))
  try {
    await symlink(outside, at('link'))
    await start()
    await writeFile(join(outside, 'secret'), 'x')
    await writeFile(at('last'), 'x')
    await expect.poll(() => seen).toContain('created last')
    expect(seen.filter((line) => line.includes('secret'))).toEqual([])
  } finally {
    await rm(outside, { recursive: true })
  }
})

it('refuses a tree with too many directories, in words', async () => {
  for (let index = 0; index < 5; index += 1) await mkdir(at(`d${index}`))
  await expect(start(5)).rejects.toMatchObject({
    code: 'Invalid',
    message: expect.stringContaining('has more than 5 directories: watch one below it'),
  })
  await start(6)
})

it('tells of a file that is written through the daemon, and not of the name it is written under first', async () => {
  await start()
  const url = new URL('http://daemon/v1/files')
  await putFile(at('written'), url, new Request(url, { method: 'PUT', body: 'x' }))
  await writeFile(at('last'), 'x')
  await expect.poll(() => seen).toContain('created last')
  expect(seen).toContain('created written')
  expect(seen.filter((line) => line.includes('.corral-'))).toEqual([])
})
