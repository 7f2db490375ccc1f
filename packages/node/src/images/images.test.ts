import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Entry, tar } from './crafted-tar.test-suite.js'
import { canonicalName, ImageDirectory } from './image-directory.js'

let scratch: string
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'corral-images-'))
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

let count = 0
function written(content: Buffer): string {
  const path = join(scratch, `archive-${++count}.tar`)
  writeFileSync(path, content)
  return path
}

const images = (): ImageDirectory => new ImageDirectory(join(scratch, `images-${++count}`))
const small = { maxBytes: 4096, maxFiles: 20 }

describe('a root file system', () => {
  it('keeps files, links and modes, without set-id bits, devices and pipes', async () => {
    const archive = tar([
      { path: './', type: '5' },
      { path: './usr/bin/', type: '5' },
      { path: './usr/bin/tool', mode: 0o4755, content: '#!/bin/sh\n' },
      { path: './bin', type: '2', target: 'usr/bin' },
      { path: './bin/other', content: 'through the link' },
      { path: './usr/bin/same', type: '1', target: './usr/bin/tool' },
      { path: './dev/null', type: '3' },
      { path: './run/pipe', type: '6' },
      { path: './etc/resolv.conf', type: '2', target: '/run/resolved/stub.conf' },
    ])
    const { root, stripped } = await images().import('small', written(gzipSync(archive)))
    expect(stripped).toEqual({ setuid: 1, devices: 2 })
    expect(lstatSync(join(root, 'usr/bin/tool')).mode & 0o7777).toBe(0o755)
    expect(lstatSync(join(root, 'usr/bin/same')).ino).toBe(lstatSync(join(root, 'usr/bin/tool')).ino)
    expect(readFileSync(join(root, 'usr/bin/other'), 'utf8')).toBe('through the link')
    expect(existsSync(join(root, 'dev/null'))).toBe(false)
    expect(lstatSync(join(root, 'etc/resolv.conf')).isFile()).toBe(true)
  })

  const outside = join('/tmp', `corral-escape-${process.pid}`)
  it.each<{ when: string; entries: Entry[]; code: string; says: RegExp }>([
    { when: 'a path leads out', entries: [{ path: '../x' }], code: 'Unsafe', says: /leads out/ },
    { when: 'a path leads out later', entries: [{ path: 'a/../../x' }], code: 'Unsafe', says: /leads out/ },
    {
      when: 'a hard link leads out',
      entries: [{ path: 'x', type: '1', target: '../../etc/passwd' }],
      code: 'Unsafe',
      says: /leads out/,
    },
    {
      when: 'a hard link leads through a link to the outside',
      entries: [
        { path: 'out', type: '2', target: '/etc' },
        { path: 'x', type: '1', target: 'out/hostname' },
      ],
      code: 'InvalidArchive',
      says: /not in a directory of the image/,
    },
    {
      when: 'links go in circles',
      entries: [{ path: 'a', type: '2', target: 'b' }, { path: 'b', type: '2', target: 'a' }, { path: 'a/x' }],
      code: 'Unsafe',
      says: /too many links/,
    },
    { when: 'a marker names the directory above', entries: [{ path: '.wh...' }], code: 'Unsafe', says: /leads out/ },
    {
      when: 'it has too many bytes',
      entries: [{ path: 'x', content: 'x'.repeat(5000) }],
      code: 'TooLarge',
      says: /bytes/,
    },
    {
      when: 'it has too many files',
      entries: Array.from({ length: 21 }, (_, index) => ({ path: `f${index}` })),
      code: 'TooLarge',
      says: /more than 20 files/,
    },
    { when: 'it has nothing in it', entries: [], code: 'InvalidArchive', says: /empty/ },
  ])('is refused when $when, and nothing is left of it', async ({ entries, code, says }) => {
    const store = images()
    const importing = store.import('bad', written(tar(entries)), { limits: small })
    await expect(importing).rejects.toMatchObject({ code, message: expect.stringMatching(says) })
    expect(await store.list()).toEqual([])
    expect(readdirSync(join(scratch, `images-${count - 1}`))).toEqual([])
  })

  it('writes through no link to the outside: an absolute one leads below the root', async () => {
    mkdirSync(outside)
    try {
      const entries = [
        { path: 'out', type: '2', target: outside },
        { path: 'out/x', content: 'inside' },
      ]
      const { root } = await images().import('linked', written(tar(entries)))
      expect(readdirSync(outside)).toEqual([])
      expect(readFileSync(join(root, outside, 'x'), 'utf8')).toBe('inside')
    } finally {
      rmSync(outside, { recursive: true })
    }
  })

  it.each([
    { when: 'it is no archive', bytes: Buffer.from('hello'.repeat(200)), code: 'InvalidArchive' },
    {
      when: 'it ends in the middle',
      bytes: tar([{ path: 'x', content: 'x'.repeat(3000) }]).subarray(0, 1500),
      code: 'InvalidArchive',
    },
    {
      when: 'its compression is damaged',
      bytes: gzipSync(tar([{ path: 'x' }])).subarray(0, 40),
      code: 'InvalidArchive',
    },
    { when: 'it is compressed with zstd', bytes: Buffer.from('28b52ffd00000000', 'hex'), code: 'Unsupported' },
  ])('is refused when $when', async ({ bytes, code }) => {
    await expect(images().import('bad', written(bytes))).rejects.toMatchObject({ name: 'ImageError', code })
  })
})

/** A layout with these layers, as a directory. */
function layout(layers: readonly Buffer[], change: { architecture?: string; damage?: boolean } = {}): string {
  const directory = join(scratch, `layout-${++count}`)
  const blob = (content: Buffer): { digest: string; size: number } => {
    const hex = createHash('sha256').update(content).digest('hex')
    const path = join(directory, 'blobs/sha256', hex)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, change.damage ? Buffer.concat([content, Buffer.from(' ')]) : content)
    return { digest: `sha256:${hex}`, size: content.length }
  }
  const architecture = change.architecture ?? (process.arch === 'x64' ? 'amd64' : process.arch)
  const config = {
    architecture,
    os: 'linux',
    config: { Env: ['A=1=2'], Entrypoint: ['/bin/tool'], Cmd: ['--all'], WorkingDir: '/srv' },
  }
  const manifest = blob(
    Buffer.from(JSON.stringify({ config: blob(Buffer.from(JSON.stringify(config))), layers: layers.map(blob) })),
  )
  writeFileSync(join(directory, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  const other = { digest: `sha256:${'0'.repeat(64)}`, platform: { os: 'linux', architecture: 'other' } }
  const manifests = [other, { ...manifest, platform: { os: 'linux', architecture } }]
  writeFileSync(join(directory, 'index.json'), JSON.stringify({ manifests }))
  return directory
}

describe('an OCI layout', () => {
  const lower = tar([
    { path: 'etc/kept', content: 'kept' },
    { path: 'etc/gone', content: 'gone' },
    { path: 'data/old', content: 'old' },
  ])
  const upper = gzipSync(
    tar([{ path: 'etc/.wh.gone' }, { path: 'data/.wh..wh..opq' }, { path: 'data/new', content: 'new' }]),
  )

  it.each([{ as: 'a directory' }, { as: 'an archive' }])('as $as: layers one over the other', async ({ as }) => {
    const directory = layout([lower, upper])
    const archive = join(scratch, `layout-${count}.tar`)
    if (as === 'an archive') execFileSync('tar', ['cf', archive, '-C', directory, '.'])
    const image = await images().import('team/tools:1', as === 'an archive' ? archive : directory)
    expect(image).toMatchObject({ argv: ['/bin/tool', '--all'], env: { A: '1=2' }, workingDir: '/srv' })
    expect(readdirSync(join(image.root, 'data'))).toEqual(['new'])
    expect(existsSync(join(image.root, 'etc/gone'))).toBe(false)
    expect(readFileSync(join(image.root, 'etc/kept'), 'utf8')).toBe('kept')
  })

  it.each([
    {
      when: 'it is for another machine',
      change: { architecture: 'riscv64' },
      code: 'Unsupported',
      says: /no manifest for/,
    },
    {
      when: 'a blob is not what its digest says',
      change: { damage: true },
      code: 'InvalidArchive',
      says: /does not match/,
    },
  ])('is refused when $when', async ({ change, code, says }) => {
    await expect(images().import('bad', layout([lower], change))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(says),
    })
  })
})

describe('images of a node', () => {
  it('are found by name and tag, replaced when asked, and removed', async () => {
    const store = images()
    const one = written(tar([{ path: 'one' }]))
    const two = written(tar([{ path: 'two' }]))
    await store.import('tools', one)
    await expect(store.import('tools:latest', two)).rejects.toMatchObject({ code: 'AlreadyExists' })
    expect(store.find('tools:latest@sha256:abc')?.name).toBe('tools:latest')
    expect(store.find('tools:2')).toBeUndefined()
    const { root } = await store.import('tools', two, { replace: true })
    expect([existsSync(join(root, 'one')), existsSync(join(root, 'two'))]).toEqual([false, true])
    expect(await store.remove('tools')).toBe(true)
    expect(await store.remove('tools')).toBe(false)
    expect(await store.list()).toEqual([])
  })

  it('do without what an import that was killed left, once that is old', async () => {
    const directory = join(scratch, `images-${++count}`)
    const store = new ImageDirectory(directory)
    await store.import('kept', written(tar([{ path: 'one' }])))
    for (const name of ['.young', '.old']) mkdirSync(join(directory, name, 'root'), { recursive: true })
    utimesSync(join(directory, '.old'), 0, 0)
    await store.sweep()
    expect(readdirSync(directory).sort()).toEqual(['.young', 'kept%3Alatest'])
    expect((await store.list()).map(({ name }) => name)).toEqual(['kept:latest'])
  })

  it.each([
    { image: 'debian', name: 'debian:latest' },
    { image: 'registry.local:5000/a/b', name: 'registry.local:5000/a/b:latest' },
    { image: '../x', name: undefined },
    { image: '.hidden', name: undefined },
    // Kept under a name with a dot in front, it was not listed, and swept away after some hours.
    { image: '..:80/x', name: undefined },
    { image: 'A', name: undefined },
  ])('$image is known as $name', ({ image, name }) => {
    expect(canonicalName(image)).toBe(name)
  })
})
