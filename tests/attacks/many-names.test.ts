import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { measurePod } from '../../packages/node/src/disk/pod-usage.js'
import { removeTree } from '../../packages/node/src/records/remove-tree.js'

const guardMs = 240_000
const names = 100_000
const MiB = 2 ** 20
const { PATH } = process.env

let scratch: TemporaryDirectory
beforeEach(() => {
  scratch = temporaryDirectory()
  for (const part of ['home', 'tmp', 'volumes', 'logs']) mkdirSync(join(scratch.path, 'pod', part), { recursive: true })
})
afterEach(async () => {
  process.env.PATH = PATH
  await removeTree(pod())
  await scratch[Symbol.asyncDispose]()
})

const pod = (): string => join(scratch.path, 'pod')
const within = (script: string): void => {
  execFileSync(process.execPath, ['-e', script], { cwd: join(pod(), 'tmp') })
}

/** A few files with very many names in one directory: next to no inodes, next to no bytes. */
const fillWithNames = (): void =>
  within(`const { linkSync, writeFileSync } = require('fs')
    for (let i = 0; i < ${names}; i++) {
      const first = 'f' + Math.floor(i / 50_000)
      if (i % 50_000 === 0) writeFileSync(first, '')
      else linkSync(first, 'n' + i)
    }`)

/** The most that the heap grew by while it ran. */
async function grownBy(work: () => Promise<unknown>): Promise<number> {
  const used = (): number => process.memoryUsage().heapUsed + process.memoryUsage().external
  const before = used()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, used())
  }, 2)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  return Math.max(most, used()) - before
}

it('names without end in one directory are removed without a list of them', { timeout: guardMs }, async () => {
  fillWithNames()
  expect(await grownBy(() => removeTree(pod()))).toBeLessThan(32 * MiB)
  expect(existsSync(pod())).toBe(false)
})

it('a few files with names without end count to the limit of files, and no further', { timeout: guardMs }, async () => {
  fillWithNames()
  const enough = { bytes: Number.POSITIVE_INFINITY, inodes: 1_000 }
  let counted = 0
  const grown = await grownBy(async () => {
    counted = measurePod({ directory: pod(), enough }).total.inodes
  })
  expect(counted).toBe(1_001)
  expect(grown).toBeLessThan(8 * MiB)
})

it('a file with a second name takes its room once', async () => {
  within(`const fs = require('fs'); fs.writeFileSync('a', Buffer.alloc(${MiB}, 1)); fs.linkSync('a', 'b')`)
  const everything = { bytes: Number.POSITIVE_INFINITY, inodes: Number.POSITIVE_INFINITY }
  const { parts } = measurePod({ directory: pod(), enough: everything })
  expect(parts.tmp).toMatchObject({ inodes: 3 })
  expect(Math.round((parts.tmp?.bytes ?? 0) / MiB)).toBe(1)
})

it('hundreds of directories deeper than a path can say are counted together', { timeout: guardMs }, () => {
  // Each of them alone takes programs that are started: a hundred thousand would take hours, in which no pod is counted.
  within(`const fs = require('fs'); const deep = 'd'.repeat(200)
    for (let i = 0; i < 18; i++) { fs.mkdirSync(deep); process.chdir(deep) }
    for (let i = 0; i < 300; i++) {
      const name = 'i' + i + '-'.repeat(150)
      fs.mkdirSync(name); process.chdir(name)
      fs.mkdirSync(deep); process.chdir(deep); fs.mkdirSync(deep)
      process.chdir('../..')
    }`)
  const everything = { bytes: Number.POSITIVE_INFINITY, inodes: Number.POSITIVE_INFINITY }
  const started = join(scratch.path, 'started')
  mkdirSync(join(scratch.path, 'bin'))
  writeFileSync(join(scratch.path, 'bin/du'), `#!/bin/sh\necho >> '${started}'\nPATH='${PATH}'\nexec du "$@"\n`, {
    mode: 0o755,
  })
  process.env.PATH = `${scratch.path}/bin:${PATH}`
  const { parts } = measurePod({ directory: pod(), enough: everything })
  expect(parts.tmp?.inodes).toBe(1 + 18 + 3 * 300)
  expect(readFileSync(started, 'utf8').length).toBeLessThan(60)
})
