import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type KeepRequest, openArchiveDirectory } from './archive-directory.js'
import { createTarFilter } from './tar-filter.js'

let scratch: string
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'corral-archives-'))
})
afterEach(() => rmSync(scratch, { recursive: true, force: true }))

const long = `${'d'.repeat(90)}/${'f'.repeat(90)}`

/** What set-up left, as tar makes an archive of it. */
function archiveOf(make: (directory: string) => void, format = 'gnu'): Buffer {
  const directory = join(scratch, 'made')
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory)
  make(directory)
  return execFileSync('tar', [`--format=${format}`, '-C', directory, '-cf', '-', '.'], { maxBuffer: 1 << 28 })
}

function usual(directory: string): void {
  mkdirSync(join(directory, 'd'.repeat(90)))
  writeFileSync(join(directory, 'plain'), 'plain')
  writeFileSync(join(directory, long), 'of a long name')
  writeFileSync(join(directory, 'setuid'), '#!/bin/sh\n')
  chmodSync(join(directory, 'setuid'), 0o4755)
  execFileSync('ln', ['-s', 'plain', join(directory, 'link')])
  execFileSync('ln', [join(directory, 'plain'), join(directory, 'hard')])
  execFileSync('sh', ['-c', 'mkfifo "$0"', join(directory, 'pipe')])
}

async function* inPieces(archive: Buffer, size: number): AsyncIterable<Uint8Array> {
  for (let from = 0; from < archive.length; from += size) yield archive.subarray(from, from + size)
}

const request = (archive: Buffer, more: Partial<KeepRequest> = {}, size = 64 * 1024): KeepRequest => ({
  name: 'shop-1',
  namespace: 'corral',
  podUid: 'pod-1',
  labels: { key: 'k' },
  secrets: [],
  maxBytes: 1e9,
  createdAt: '2026-01-01T00:00:00.000Z',
  trees: [{ path: '/workspace/repo', archive: () => inPieces(archive, size) }],
  ...more,
})

describe('an archive of a sandbox', () => {
  it.each<{ format: string; size: number }>([
    { format: 'gnu', size: 64 * 1024 },
    { format: 'gnu', size: 100 },
    { format: 'gnu', size: 512 },
    { format: 'posix', size: 777 },
    { format: 'ustar', size: 1 },
  ])('of format $format, in pieces of $size bytes, is kept without pipes and set-id bits', async ({ format, size }) => {
    const directory = await openArchiveDirectory(join(scratch, 'kept'))
    const info = await directory.keep(request(archiveOf(usual, format), {}, size))
    expect(info).toMatchObject({ files: 6, stripped: { setuid: 1, devices: 1 }, paths: ['/workspace/repo'] })
    const target = join(scratch, 'unpacked')
    mkdirSync(target)
    const file = join(scratch, 'kept/shop-1/tree-0.tar')
    expect(spawnSync('tar', ['-C', target, '-xpf', file]).status).toBe(0)
    expect(readdirSync(target).sort()).toEqual(['d'.repeat(90), 'hard', 'link', 'plain', 'setuid'].sort())
    expect(readFileSync(join(target, long), 'utf8')).toBe('of a long name')
    expect(statSync(join(target, 'setuid')).mode & 0o7777).toBe(0o755)
    expect(statSync(join(target, 'plain')).nlink).toBe(2)
  })

  it.each<{ when: string; archive: () => Buffer; secrets?: string[]; maxBytes?: number; refused: RegExp }>([
    {
      when: 'a file holds a secret of the set-up',
      archive: () => archiveOf((at) => writeFileSync(join(at, '.npmrc'), `${'x'.repeat(5000)}t0ken-of-npm`)),
      secrets: ['', 't0ken-of-npm'],
      refused: /^\.\/\.npmrc holds a secret of the set-up$/,
    },
    {
      when: 'a file of a long name holds one',
      archive: () =>
        archiveOf((at) => {
          usual(at)
          writeFileSync(join(at, long), 't0ken-of-npm')
        }),
      secrets: ['t0ken-of-npm'],
      refused: /f{90} holds a secret/,
    },
    {
      when: 'a file is named as the secret it holds',
      archive: () => archiveOf((at) => writeFileSync(join(at, 't0ken-of-npm'), 't0ken-of-npm')),
      secrets: ['t0ken-of-npm'],
      refused: /^\.\/\*\*\* holds a secret of the set-up$/,
    },
    { when: 'it was cut', archive: () => archiveOf(usual).subarray(0, 2000), refused: /ends too early/ },
    { when: 'it is empty', archive: () => Buffer.alloc(0), refused: /ends too early/ },
    { when: 'it is something else', archive: () => Buffer.alloc(4096, 'x'), refused: /a number is none/ },
    { when: 'its headers are made up', archive: () => Buffer.alloc(4096, '0'), refused: /a checksum is wrong/ },
    {
      when: 'it is larger than all may be',
      archive: () => archiveOf((at) => writeFileSync(join(at, 'large'), Buffer.alloc(200_000))),
      maxBytes: 100_000,
      refused: /--snapshot-budget/,
    },
  ])(
    'is refused where $when, and nothing of it is left',
    async ({ archive, secrets = [], maxBytes = 1e9, refused }) => {
      const directory = await openArchiveDirectory(join(scratch, 'kept'))
      for (const size of [64 * 1024, 7]) {
        const kept = directory.keep(request(archive(), { secrets, maxBytes }, size))
        await expect(kept).rejects.toThrow(refused)
        await expect(kept).rejects.not.toThrow('t0ken')
      }
      expect([directory.list(), readdirSync(join(scratch, 'kept'))]).toEqual([[], []])
    },
  )

  it('does not count two secrets of neighbouring files as one', () => {
    const archive = archiveOf((at) => {
      writeFileSync(join(at, 'a'), `${'x'.repeat(510)}to`)
      writeFileSync(join(at, 'b'), 'ken')
    })
    const filter = createTarFilter(['token'])
    filter.push(archive)
    expect(filter.end().entries).toBe(2)
  })
})

describe('the directory of archives', () => {
  it('finds what it kept after a restart, and sweeps what was half made', async () => {
    const path = join(scratch, 'kept')
    const info = await (await openArchiveDirectory(path)).keep(request(archiveOf(usual)))
    mkdirSync(join(path, '.shop-2-half'))
    mkdirSync(join(path, 'no-snapshot'))
    const again = await openArchiveDirectory(path)
    expect(again.list()).toEqual([info])
    expect(readdirSync(path).sort()).toEqual(['no-snapshot', 'shop-1'])
  })

  it('answers what it has for the same build, and refuses another build of the same name', async () => {
    const directory = await openArchiveDirectory(join(scratch, 'kept'))
    const archive = archiveOf(usual)
    const info = await directory.keep(request(archive))
    expect(await directory.keep(request(archive))).toBe(info)
    await expect(directory.keep(request(archive, { podUid: 'pod-2' }))).rejects.toMatchObject({ code: 'AlreadyExists' })
  })

  it('removes nothing that is being copied into a sandbox', async () => {
    const directory = await openArchiveDirectory(join(scratch, 'kept'))
    await directory.keep(request(archiveOf(usual)))
    await directory.read('shop-1', 0, async (archive) => {
      expect(directory.isRead('shop-1')).toBe(true)
      await expect(directory.remove('shop-1')).rejects.toMatchObject({ code: 'InUse' })
      expect((await text(archive)).length).toBeGreaterThan(0)
    })
    await directory.remove('shop-1')
    await directory.remove('shop-1')
    expect([directory.find('shop-1'), existsSync(join(scratch, 'kept/shop-1'))]).toEqual([undefined, false])
  })
})
