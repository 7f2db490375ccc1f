import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { removeTree } from '../records/remove-tree.js'
import { measurePod } from './pod-usage.js'

const MiB = 2 ** 20
let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-usage-'))
  for (const name of ['home', 'tmp', 'volumes/work/deep', 'logs/main'])
    mkdirSync(join(directory, name), { recursive: true })
})
afterEach(async () => {
  await removeTree(directory)
  expect(existsSync(directory)).toBe(false)
})

const at = (name: string): string => join(directory, name)
const everything = { bytes: Number.POSITIVE_INFINITY, inodes: Number.POSITIVE_INFINITY }
const measure = (hostUid?: number) =>
  measurePod({ directory, enough: everything, ...(hostUid === undefined ? {} : { hostUid }) })
const write = (name: string, mebibytes: number): void => writeFileSync(at(name), Buffer.alloc(mebibytes * MiB, 1))

describe('what a pod takes', () => {
  it('is told for each of its parts and in all', () => {
    write('home/a', 1)
    write('tmp/a', 2)
    write('volumes/work/deep/a', 3)
    write('logs/main/0.log', 4)
    const { total, parts } = measure()
    const mebibytes = Object.fromEntries(
      Object.entries(parts).map(([name, { bytes }]) => [name, Math.round(bytes / MiB)]),
    )
    expect(mebibytes).toEqual({ home: 1, tmp: 2, 'volumes/work': 3, 'logs/main': 4 })
    expect(Math.round(total.bytes / MiB)).toBe(10)
  })

  it.each<{ what: string; make: () => void; takes: number }>([
    {
      what: 'a file with many names, once',
      make: () => {
        write('tmp/a', 2)
        linkSync(at('tmp/a'), at('home/b'))
      },
      takes: 2,
    },
    {
      what: 'what is below a name that is no text',
      make: () => {
        const odd = Buffer.concat([Buffer.from(at('tmp/')), Buffer.from([0xff, 0xfe])])
        mkdirSync(odd)
        writeFileSync(Buffer.concat([odd, Buffer.from('/a')]), Buffer.alloc(2 * MiB, 1))
      },
      takes: 2,
    },
    {
      what: 'what lies deeper than a path can say',
      make: () => {
        // One step at a time, as a sandbox does it: no single path is too long.
        const script = `const fs = require('fs'); const name = "it's-".repeat(40)
          for (let i = 0; i < 40; i++) { fs.mkdirSync(name); process.chdir(name) }
          fs.writeFileSync('a', Buffer.alloc(${3 * MiB}, 1))`
        execFileSync(process.execPath, ['-e', script], { cwd: at('tmp') })
      },
      takes: 3,
    },
    {
      what: 'of a sparse file what it holds',
      make: () => {
        write('tmp/a', 1)
        truncateSync(at('tmp/a'), 900 * MiB)
      },
      takes: 1,
    },
    { what: 'a link to a file outside, nothing', make: () => symlinkSync(process.execPath, at('tmp/a')), takes: 0 },
    {
      what: 'what lies in a directory that may not be read',
      make: () => {
        write('volumes/work/deep/a', 2)
        chmodSync(at('volumes/work/deep'), 0)
      },
      takes: 2,
    },
  ])('$what', ({ make, takes }) => {
    make()
    expect(Math.round(measure().total.bytes / MiB)).toBe(takes)
  })

  // As in a sandbox: what else runs as root on the machine has deleted files of its own.
  it.skipIf(process.getuid?.() !== 0)('has a file that was deleted and is still open (as another user)', async () => {
    const uid = 2_000_000_000 + (process.pid % 100_000_000)
    write('tmp/a', 3)
    const file = openSync(at('tmp/a'), 'r')
    const holder = spawn('sh', ['-c', 'exec 3<&0; read line <&4'], {
      uid,
      stdio: [file, 'ignore', 'ignore', 'ignore', 'pipe'],
    })
    closeSync(file)
    unlinkSync(at('tmp/a'))
    const taken = (): number => Math.round(measure(uid).total.bytes / MiB)
    await expect.poll(taken).toBe(3)
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    expect(taken()).toBe(0)
  })

  it('is counted no further than needed', () => {
    for (let i = 0; i < 50; i++) writeFileSync(at(`tmp/${i}`), '')
    expect(measurePod({ directory, enough: { bytes: 1e9, inodes: 20 } }).total.inodes).toBe(21)
    expect(measure().total.inodes).toBeGreaterThanOrEqual(50)
  })
})
