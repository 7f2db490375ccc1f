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
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Entry, tar } from './crafted-tar.test-suite.js'
import { ImageDirectory } from './image-directory.js'

let scratch: string
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'corral-hostile-'))
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

let count = 0
const place = (): string => join(scratch, `place-${++count}`)
function written(content: Buffer): string {
  const path = place()
  writeFileSync(path, content)
  return path
}
const hexOf = (content: Buffer | string): string => createHash('sha256').update(content).digest('hex')
const architecture = process.arch === 'x64' ? 'amd64' : process.arch
const limits = { maxBytes: 100_000, maxFiles: 50 }

/** Everything below a directory, links not followed. */
const everything = (directory: string): string[] => (readdirSync(directory, { recursive: true }) as string[]).sort()

/** Imports with a file beside the images whose content, mode and place no archive may change. */
async function imported(archive: string, within = limits) {
  const directory = place()
  mkdirSync(join(directory, 'beside'), { recursive: true })
  writeFileSync(join(directory, 'beside', 'victim'), 'untouched', { mode: 0o640 })
  const before = lstatSync(join(directory, 'beside', 'victim'))
  const store = new ImageDirectory(join(directory, 'images'))
  const image = await store.import('tried', archive, { limits: within }).catch((error: unknown) => error as Error)
  const after = lstatSync(join(directory, 'beside', 'victim'))
  expect([after.mode, after.nlink, after.mtimeMs]).toEqual([before.mode, before.nlink, before.mtimeMs])
  expect(readFileSync(join(directory, 'beside', 'victim'), 'utf8')).toBe('untouched')
  expect(readdirSync(join(directory, 'beside'))).toEqual(['victim'])
  if (image instanceof Error) expect(everything(join(directory, 'images'))).toEqual([])
  return image
}

/** From the root of an image to the file beside the images: images/.half/root. */
const victim = '../../../beside/victim'

describe('a root file system made to harm', () => {
  it.each<{ when: string; entries: Entry[]; code: string; says: RegExp }>([
    { when: 'a path climbs out', entries: [{ path: victim }], code: 'Unsafe', says: /leads out/ },
    { when: 'a directory climbs out', entries: [{ path: '../x/', type: '5' }], code: 'Unsafe', says: /leads out/ },
    {
      when: 'a hard link to the outside is to be written through',
      entries: [
        { path: 'x', type: '1', target: victim },
        { path: 'x', content: 'harm' },
      ],
      code: 'Unsafe',
      says: /leads out/,
    },
    {
      when: 'a hard link leads to an absolute path',
      entries: [{ path: 'x', type: '1', target: '/etc/passwd' }],
      code: 'InvalidArchive',
      says: /not in a directory of the image/,
    },
    {
      when: 'a hard link leads to a device that was left out',
      entries: [
        { path: 'disk', type: '4' },
        { path: 'x', type: '1', target: 'disk' },
      ],
      code: 'Unsafe',
      says: /does not lead to a file/,
    },
    {
      when: 'it has a file in the place of a directory that every pod needs',
      entries: [{ path: 'bin/sh' }, { path: 'etc', content: 'no directory' }],
      code: 'InvalidArchive',
      says: /\/etc is no directory/,
    },
    {
      when: 'a marker removes the directory above',
      entries: [{ path: 'a/.wh...' }],
      code: 'Unsafe',
      says: /leads out/,
    },
    { when: 'a marker removes its own directory', entries: [{ path: 'a/.wh..' }], code: 'Unsafe', says: /leads out/ },
    {
      when: 'an entry says it has a terabyte',
      entries: [{ path: 'x', size: 8 ** 11 - 1 }],
      code: 'TooLarge',
      says: /more than 100000 bytes/,
    },
    {
      when: 'one path implies more directories than it may have files',
      entries: [{ path: `${'d/'.repeat(49)}x` }, { path: 'second/x' }],
      code: 'TooLarge',
      says: /more than 50 files/,
    },
    {
      when: 'a name is longer than a name can be',
      entries: [
        { path: '././@LongLink', type: 'L', content: 'n'.repeat(300) },
        { path: 'x', content: 'x' },
      ],
      code: 'InvalidArchive',
      says: /ENAMETOOLONG/,
    },
    {
      when: 'it has a sparse file, of which an archive has parts only',
      entries: [{ path: 'x', type: 'S' }],
      code: 'Unsupported',
      says: /without --sparse/,
    },
  ])('is refused when $when, and nothing is left of it', async ({ entries, code, says }) => {
    const image = await imported(written(tar(entries)))
    expect(image).toMatchObject({ name: 'ImageError', code, message: expect.stringMatching(says) })
  })

  it.each([
    { of: 'zeros in one file', bytes: () => tar([{ path: 'x', content: Buffer.alloc(4_000_000) }]), says: /bytes/ },
    {
      of: 'attributes of nothing',
      bytes: () =>
        tar(Array.from({ length: 300 }, () => ({ path: 'p', type: 'x', content: '9 a=xxxx\n'.repeat(100) }))),
      says: /unpacks to more/,
    },
    {
      of: 'devices with content',
      bytes: () => tar([{ path: 'd', type: '3', content: Buffer.alloc(4_000_000) }]),
      says: /unpacks to more/,
    },
    {
      of: 'names of the root',
      bytes: () => tar(Array.from({ length: 2000 }, () => ({ path: './', type: '5' }))),
      says: /unpacks to more/,
    },
    {
      of: 'what follows the end of the archive',
      bytes: () => Buffer.concat([tar([{ path: 'x' }]), Buffer.alloc(4_000_000)]),
      says: /unpacks to more/,
    },
  ])('is refused when it is a gzip bomb of $of', async ({ bytes, says }) => {
    const image = await imported(written(gzipSync(bytes())))
    expect(image).toMatchObject({ code: 'TooLarge', message: expect.stringMatching(says) })
  })

  it('changes nothing outside through links, duplicates and markers, and is an image all the same', async () => {
    const entries: Entry[] = [
      { path: 'up', type: '2', target: '../../../beside' },
      { path: 'up/victim', content: 'inside' },
      { path: 'abs', type: '2', target: '/' },
      { path: 'abs/kept', content: 'through /' },
      { path: 'up/.wh.victim' },
      { path: 'twice', content: 'first', mode: 0o6777 },
      { path: 'twice', type: '2', target: victim },
      { path: 'twice', content: 'last', mode: 0o4755 },
      { path: 'again', type: '2', target: victim },
      { path: 'again', type: '1', target: 'again' },
      { path: 'alias', type: '1', target: 'again' },
      { path: 'null', type: '3' },
    ]
    const image = await imported(written(tar(entries)))
    if (image instanceof Error) throw image
    expect(image.stripped).toEqual({ setuid: 2, devices: 1 })
    expect(lstatSync(join(image.root, 'twice')).mode & 0o7777).toBe(0o755)
    expect(readFileSync(join(image.root, 'twice'), 'utf8')).toBe('last')
    expect(readFileSync(join(image.root, 'kept'), 'utf8')).toBe('through /')
    expect(readdirSync(join(image.root, 'beside'))).toEqual([])
    expect(existsSync(join(image.root, 'null'))).toBe(false)
    // The same link under another name, not what it leads to.
    expect(lstatSync(join(image.root, 'alias')).isSymbolicLink()).toBe(true)
  })
})

interface DockerChange {
  config?: object
  manifest?: object
  /** In place of what the layer's digest is of. */
  layer?: Buffer
  /** In place of the directory's files, after they were written. */
  spoil?: (directory: string) => void
}

const content = tar([{ path: 'etc/from', content: 'the layer' }])

/** What an archiver writes for one image of two equal layers, as a directory. */
function saved(as: string, { config = {}, manifest = {}, layer = content, spoil }: DockerChange = {}): string {
  const directory = place()
  const put = (name: string, bytes: Buffer | string): string => {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), bytes)
    return name
  }
  const id = hexOf(content)
  const settings = JSON.stringify({
    architecture,
    os: 'linux',
    config: { Env: ['A=1'], Cmd: ['/bin/tool'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${id}`, `sha256:${id}`] },
    ...config,
  })
  let names: { Config: string; Layers: string[] }
  if (as === 'docker save, before 25') {
    const [one, two] = ['a'.repeat(64), 'b'.repeat(64)]
    put(`${one}/VERSION`, '1.0')
    put(`${one}/json`, '{}')
    put(`${one}/layer.tar`, layer)
    mkdirSync(join(directory, two))
    symlinkSync(`../${one}/layer.tar`, join(directory, two, 'layer.tar'))
    names = { Config: put(`${hexOf(settings)}.json`, settings), Layers: [`${one}/layer.tar`, `${two}/layer.tar`] }
  } else if (as === 'podman save') {
    const file = put(`${id}.tar`, layer)
    mkdirSync(join(directory, 'c'.repeat(64)))
    symlinkSync(`../${file}`, join(directory, 'c'.repeat(64), 'layer.tar'))
    names = { Config: put(`${hexOf(settings)}.json`, settings), Layers: [file, file] }
  } else if (as === 'crane') {
    const file = put(`${id}.tar.gz`, gzipSync(layer))
    names = { Config: put(`sha256:${hexOf(settings)}`, settings), Layers: [file, file] }
  } else {
    const file = put(`blobs/sha256/${id}`, layer)
    names = { Config: put(`blobs/sha256/${hexOf(settings)}`, settings), Layers: [file, file] }
  }
  put('manifest.json', JSON.stringify([{ RepoTags: ['tried:1'], ...names, ...manifest }]))
  spoil?.(directory)
  return directory
}

function archived(directory: string): string {
  const path = place()
  execFileSync('tar', ['cf', path, '-C', directory, ...readdirSync(directory).sort()])
  return path
}

describe('an image as other tools save it', () => {
  it.each([{ as: 'docker save, before 25' }, { as: 'docker save' }, { as: 'podman save' }, { as: 'crane' }])(
    '$as: is imported from the archive and from its directory',
    async ({ as }) => {
      for (const path of [archived(saved(as)), saved(as)]) {
        const image = await imported(path)
        if (image instanceof Error) throw image
        expect(readFileSync(join(image.root, 'etc/from'), 'utf8')).toBe('the layer')
        expect(image).toMatchObject({ argv: ['/bin/tool'], env: { A: '1' } })
        expect(image.digest).toMatch(/^sha256:[0-9a-f]{64}$/)
      }
    },
  )

  const index = (directory: string, text: string): void => writeFileSync(join(directory, 'index.json'), text)
  it.each<{ when: string; change: DockerChange; code: string; says: RegExp }>([
    {
      when: 'a layer is not what its digest says',
      change: { layer: tar([{ path: 'etc/from', content: 'another' }]) },
      code: 'InvalidArchive',
      says: /does not match its digest/,
    },
    {
      when: 'a layer has something after its end that its digest does not know',
      change: { layer: Buffer.concat([content, Buffer.alloc(512)]) },
      code: 'InvalidArchive',
      says: /does not match its digest/,
    },
    {
      when: 'its configuration is not what its name says',
      change: {
        spoil: (at) => writeFileSync(join(at, readdirSync(at).find((name) => name.endsWith('.json')) ?? ''), '{}'),
      },
      code: 'InvalidArchive',
      says: /does not match its digest/,
    },
    {
      when: 'its configuration knows fewer layers than there are',
      change: { config: { rootfs: { diff_ids: [] } } },
      code: 'InvalidArchive',
      says: /names 2 layers/,
    },
    {
      when: 'a layer is to be read from elsewhere',
      change: { manifest: { Layers: ['../../etc/passwd', 'x'] } },
      code: 'Unsafe',
      says: /outside of the image/,
    },
    {
      when: 'a layer is not there',
      change: { manifest: { Layers: ['gone.tar', 'gone.tar'] } },
      code: 'InvalidArchive',
      says: /has no gone\.tar/,
    },
    {
      when: 'there are two images in it',
      change: {
        spoil: (at) => {
          const path = join(at, 'manifest.json')
          const [one] = JSON.parse(readFileSync(path, 'utf8')) as unknown[]
          writeFileSync(path, JSON.stringify([one, one]))
        },
      },
      code: 'Unsupported',
      says: /has 2 images/,
    },
    {
      when: 'its index is no JSON',
      change: { spoil: (at) => index(at, '{') },
      code: 'InvalidArchive',
      says: /no JSON/,
    },
    {
      when: 'its index is larger than any index',
      change: { spoil: (at) => index(at, ' '.repeat(5_000_000)) },
      code: 'InvalidArchive',
      says: /too large/,
    },
    {
      when: 'its index names a file in place of a digest',
      change: { spoil: (at) => index(at, '{"manifests":[{"digest":"sha256:../../../etc/passwd"}]}') },
      code: 'Unsupported',
      says: /not of sha256/,
    },
  ])('is refused when $when, and nothing is left of it', async ({ change, code, says }) => {
    const image = await imported(saved('podman save', change))
    expect(image).toMatchObject({ name: 'ImageError', code, message: expect.stringMatching(says) })
  })

  it.each([
    {
      when: 'leads to a file of this machine',
      link: (path: string) => symlinkSync('/etc/passwd', path),
      says: /leads out/,
    },
    {
      when: 'is a pipe nobody writes to',
      link: (path: string) => void execFileSync('sh', ['-c', 'mkfifo "$0"', path]),
      says: /is no file/,
    },
  ])('is refused as a directory when its index $when', async ({ link, says }) => {
    const image = await imported(saved('podman save', { spoil: (at) => link(join(at, 'index.json')) }))
    expect(image).toMatchObject({ name: 'ImageError', message: expect.stringMatching(says) })
  })

  it('whose archive has a link to the outside among its layers does not have it', async () => {
    const spoil = (at: string): void => {
      const layer = join(at, `${hexOf(content)}.tar`)
      rmSync(layer)
      symlinkSync('/etc/passwd', layer)
    }
    const image = await imported(archived(saved('podman save', { spoil })))
    expect(image).toMatchObject({ code: 'InvalidArchive', message: expect.stringMatching(/has no [0-9a-f]{64}\.tar/) })
  })
})

describe('an archive of a layout made to harm', () => {
  const guardMs = 120_000
  const wide = { maxBytes: 100_000_000, maxFiles: 10_000 }

  it('by files without end, of no size, is refused before the disk has them all', { timeout: guardMs }, async () => {
    const blobs = Array.from({ length: 2_100 }, (_, index) => ({ path: `blobs/sha256/${hexOf(String(index))}` }))
    const archive = written(tar([{ path: 'oci-layout', content: '{}' }, ...blobs]))
    expect(await imported(archive, wide)).toMatchObject({
      code: 'TooLarge',
      message: expect.stringContaining('2000 files'),
    })
  })

  it.each([
    { names: 'as often as tools do', count: 120, is: { name: 'tried:latest' } },
    { names: 'without end', count: 501, is: { code: 'InvalidArchive' } },
  ])('by one layer that is named $names', { timeout: guardMs }, async ({ count: layers, is }) => {
    const layer = tar([{ path: 'a', content: 'xy' }])
    const config = JSON.stringify({ architecture, os: 'linux', config: {} })
    const digests = (text: string | Buffer) => ({ digest: `sha256:${hexOf(text)}` })
    const manifest = JSON.stringify({ config: digests(config), layers: Array(layers).fill(digests(layer)) })
    const blobs = [layer, Buffer.from(config), Buffer.from(manifest)]
    const archive = written(
      tar([
        { path: 'index.json', content: JSON.stringify({ manifests: [digests(manifest)] }) },
        ...blobs.map((content) => ({ path: `blobs/sha256/${hexOf(content)}`, content })),
      ]),
    )
    expect(await imported(archive, wide)).toMatchObject(is)
  })
})

describe('what a task would miss in an image', () => {
  const programs = ['usr/bin/bash', 'usr/bin/git', 'usr/bin/mkdir'].map((path) => ({ path }))
  const libraries = ['libc.so.6', 'libstdc++.so.6.0.1'].map((name) => ({ path: `usr/lib/x86_64-linux-gnu/${name}` }))
  const link = { path: 'usr/lib/x86_64-linux-gnu/libstdc++.so.6', type: '2', target: 'libstdc++.so.6.0.1' }
  it.each<{ when: string; entries: Entry[]; lacks: string[] | undefined }>([
    { when: 'nothing, by links too', entries: [...programs, ...libraries, link], lacks: undefined },
    {
      when: 'git',
      entries: [...programs.filter(({ path }) => !path.endsWith('git')), ...libraries, link],
      lacks: ['git'],
    },
    {
      when: 'all, where it has a busybox alone',
      entries: [{ path: 'bin/sh' }],
      lacks: ['bash', 'git', 'coreutils', 'glibc', 'libstdc++'],
    },
    {
      when: 'bash, where that is a link to the machine’s',
      entries: [
        ...programs.slice(1),
        ...libraries,
        link,
        { path: 'usr/bin/bash', type: '2', target: '/etc/os-release' },
      ],
      lacks: ['bash'],
    },
  ])('is told: $when', async ({ entries, lacks }) => {
    const image = await imported(written(tar(entries)))
    if (image instanceof Error) throw image
    expect(image.lacks).toEqual(lacks)
  })
})
