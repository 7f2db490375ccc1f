import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SandboxError } from './sandbox-error.js'
import { SandboxFiles } from './sandbox-files.js'
import type { SandboxLink } from './sandbox-link.js'

describe('a directory that comes out as an archive', () => {
  let place: string
  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), 'corral-files-'))
    writeFileSync(join(place, 'file'), 'content')
  })
  afterEach(() => rmSync(place, { recursive: true, force: true }))

  const archive = (): Buffer => execFileSync('tar', ['-C', place, '-cf', '-', './file'])
  const filesOf = (pack: () => AsyncIterable<Uint8Array>): SandboxFiles => {
    const link = { open: async () => ({}), runtime: async () => ({ files: { pack } }), diagnose: async () => undefined }
    return new SandboxFiles(link as unknown as SandboxLink)
  }

  it('is whole although tar stops reading before the padding behind the archive', async () => {
    const files = filesOf(async function* () {
      yield archive()
      // More than a pipe holds: it cannot all be written before tar has ended.
      for (let i = 0; i < 64; i++) yield Buffer.alloc(1024 * 1024)
    })
    await files.downloadDirectory('/anywhere', join(place, 'back'))
    expect(readFileSync(join(place, 'back/file'), 'utf8')).toBe('content')
  })

  it('is a failure where the archive breaks off', async () => {
    const files = filesOf(async function* () {
      yield archive().subarray(0, 700)
    })
    await expect(files.downloadDirectory('/anywhere', join(place, 'back'))).rejects.toMatchObject({
      code: 'ArchiveFailed',
      message: expect.stringMatching(/tar ended with 2/),
    })
  })

  it.each([
    {
      what: 'breaks off',
      pack: async function* () {
        yield archive().subarray(0, 700)
      },
    },
    {
      what: 'is of a directory that is not there',
      // biome-ignore lint/correctness/useYield: it fails before its first piece
      pack: async function* (): AsyncGenerator<Uint8Array> {
        throw new SandboxError('NotFound', 'there is no "/anywhere"')
      },
    },
  ])('leaves no directory behind that it made, where it $what', async ({ pack }) => {
    await expect(filesOf(pack).downloadDirectory('/anywhere', join(place, 'new/deep'))).rejects.toThrow()
    expect(readdirSync(place)).toEqual(['file'])
    mkdirSync(join(place, 'old'))
    await expect(filesOf(pack).downloadDirectory('/anywhere', join(place, 'old'))).rejects.toThrow()
    expect(readdirSync(join(place, 'old'))).toEqual([])
  })

  it('has files whose names are no UTF-8, and directories of such names', async () => {
    execFileSync('sh', ['-c', 'cd "$1" && d=$(printf "made/d\\377") && mkdir -p "$d" && echo x > "$d/f"', 'sh', place])
    const files = filesOf(async function* () {
      yield execFileSync('tar', ['-C', join(place, 'made'), '-cf', '-', '.'])
    })
    await files.downloadDirectory('/anywhere', join(place, 'back'))
    expect(readdirSync(join(place, 'back'), { encoding: 'latin1' })).toEqual(['d\xff'])
    expect(readFileSync(Buffer.from(join(place, 'back/d\xff/f'), 'latin1'), 'utf8')).toBe('x\n')
  })

  describe('into a directory that is there', () => {
    const made = (name: string): string => join(place, 'made', name)
    const back = (name = ''): string => join(place, 'back', name)
    beforeEach(() => {
      mkdirSync(made('inside'), { recursive: true })
      mkdirSync(join(place, 'outside'))
      mkdirSync(back())
      writeFileSync(made('inside/file'), 'new')
    })
    /** An archive of these names alone, as a sandbox may make one. */
    const download = (...names: string[]): Promise<void> =>
      filesOf(async function* () {
        yield execFileSync('tar', ['-C', join(place, 'made'), '-cf', '-', ...names])
      }).downloadDirectory('/anywhere', back())

    it.each([
      { when: 'the archive has the directory', names: ['./inside'] },
      { when: 'the archive has the file alone', names: ['./inside/file'] },
    ])('nothing is written through a link that lies in the way, where $when', async ({ names }) => {
      symlinkSync('../outside', back('inside'))
      await download(...names)
      expect(readdirSync(join(place, 'outside'))).toEqual([])
      expect(lstatSync(back('inside')).isDirectory()).toBe(true)
      expect(readFileSync(back('inside/file'), 'utf8')).toBe('new')
    })

    it('nor through one that an earlier download of the same sandbox brought', async () => {
      rmSync(made('inside'), { recursive: true })
      symlinkSync('../outside', made('inside'))
      await download('.')
      expect(lstatSync(back('inside')).isSymbolicLink()).toBe(true)
      rmSync(made('inside'))
      mkdirSync(made('inside'))
      writeFileSync(made('inside/file'), 'again')
      await download('./inside/file')
      expect(readdirSync(join(place, 'outside'))).toEqual([])
      expect(readFileSync(back('inside/file'), 'utf8')).toBe('again')
    })

    it('files of the same name are replaced, others stay, links stay links, and modes are kept', async () => {
      mkdirSync(back('inside'), { mode: 0o750 })
      writeFileSync(back('inside/file'), 'old')
      writeFileSync(back('inside/mine'), 'mine')
      writeFileSync(made('run'), '#!/bin/sh\n', { mode: 0o755 })
      symlinkSync('inside/file', made('link'))
      mkdirSync(made('locked'))
      writeFileSync(made('locked/file'), 'locked', { mode: 0o444 })
      execFileSync('chmod', ['0555', made('locked')])
      await download('.')
      expect(readdirSync(back()).sort()).toEqual(['inside', 'link', 'locked', 'run'])
      expect(
        ['inside/file', 'inside/mine', 'link', 'locked/file'].map((name) => readFileSync(back(name), 'utf8')),
      ).toEqual(['new', 'mine', 'new', 'locked'])
      expect(lstatSync(back('link')).isSymbolicLink()).toBe(true)
      const modes = ['run', 'locked', 'locked/file', 'inside'].map((name) => statSync(back(name)).mode & 0o777)
      expect(modes).toEqual([0o755, 0o555, 0o444, 0o750])
      execFileSync('chmod', ['-R', 'u+w', made('locked'), back('locked')])
    })

    it('a file where a directory with something in it is says so, and leaves both', async () => {
      mkdirSync(back('inside/file'), { recursive: true })
      writeFileSync(back('inside/file/kept'), 'kept')
      await expect(download('.')).rejects.toMatchObject({ code: 'IsADirectory' })
      expect(readFileSync(back('inside/file/kept'), 'utf8')).toBe('kept')
      expect(readdirSync(back())).toEqual(['inside'])
    })

    // Only root may make one, and tar makes those of an archive for root.
    it.runIf(process.getuid?.() === 0)('a device of the archive is left out', async () => {
      execFileSync('mknod', [made('disk'), 'c', '1', '3'])
      await download('.')
      expect([existsSync(back('disk')), existsSync(back('inside/file'))]).toEqual([false, true])
    })
  })
})

it('an upload that is refused before it begins leaves no tar behind that waits for a reader', async () => {
  const place = mkdtempSync(join(tmpdir(), 'corral-files-'))
  // More than a pipe holds: tar would wait for ever.
  writeFileSync(join(place, 'large'), Buffer.alloc(1024 * 1024))
  const unpack = async (): Promise<never> => {
    throw new SandboxError('Invalid', '"relative" is not an absolute path')
  }
  const link = { open: async () => ({}), runtime: async () => ({ files: { unpack } }), diagnose: async () => undefined }
  const files = new SandboxFiles(link as unknown as SandboxLink)
  const children = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'ProcessWrap').length
  const before = children()
  await expect(files.uploadDirectory(place, 'relative')).rejects.toMatchObject({ code: 'Invalid' })
  await expect.poll(children).toBeLessThanOrEqual(before)
  rmSync(place, { recursive: true, force: true })
})

it('a listing that is read twice was empty the second time', async () => {
  async function* list() {
    yield { name: 'a', path: 'a' }
  }
  const link = { open: async () => ({}), runtime: async () => ({ files: { list } }) }
  const listing = new SandboxFiles(link as unknown as SandboxLink).list('/anywhere')
  expect(await listing).toHaveLength(1)
  expect(await listing).toHaveLength(1)
  const names: string[] = []
  for await (const { name } of listing) names.push(name)
  expect(names).toEqual(['a'])
})
