import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
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
    const link = { runtime: async () => ({ files: { pack } }), diagnose: async () => undefined }
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
})
