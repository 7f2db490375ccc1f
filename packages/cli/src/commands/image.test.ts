import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { addImageCommand } from './image.js'

let scratch: string
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'corral-image-'))
  chmodSync(scratch, 0o711)
  mkdirSync(join(scratch, 'bin'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(scratch, { recursive: true, force: true })
})

/** A program of that name which notes its words and then does this with `$last`, the last of them. */
function standIn(script: string): void {
  const path = join(scratch, 'bin', 'mmdebstrap')
  writeFileSync(path, `#!/bin/sh\nfor last; do :; done\necho "$*" >> ${scratch}/words\n${script}\n`)
  chmodSync(path, 0o755)
}

async function image(...words: string[]): Promise<void> {
  const program = new Command().exitOverride()
  addImageCommand(program)
  await program.parseAsync(['image', ...words, '--data-dir', join(scratch, 'data')], { from: 'user' })
}

describe('corral image build', () => {
  it.each([
    {
      when: 'there is no mmdebstrap',
      path: '/nowhere',
      script: '',
      message: 'there is no mmdebstrap on this machine',
      hint: 'apt-get install mmdebstrap',
    },
    {
      when: 'it fails',
      path: `${process.env.PATH}`,
      script: '[ "$last" = --version ] || { echo "E: no such package: pythn" >&2; exit 25; }',
      message: 'mmdebstrap ended with exit code 25: E: no such package: pythn',
      hint: 'Nothing was imported',
    },
  ])('tells what to do when $when', async ({ path, script, message, hint }) => {
    if (script) standIn(script)
    vi.stubEnv('PATH', script ? `${join(scratch, 'bin')}:${path}` : path)
    await expect(image('build', 'tools:1', '--debian', 'pythn')).rejects.toMatchObject({
      name: 'CliError',
      message,
      hint: expect.stringContaining(hint),
    })
  })

  it('refuses what is no name of a package, as an option would be', async () => {
    standIn('exit 0')
    vi.stubEnv('PATH', `${join(scratch, 'bin')}:${process.env.PATH}`)
    await expect(image('build', 'tools:1', '--debian', 'git,--hook-dir=x')).rejects.toMatchObject({
      message: '"git,--hook-dir=x" is no name of a package',
    })
  })

  it('asks for what tasks need beside the packages, and imports what comes out', async () => {
    mkdirSync(join(scratch, 'root/etc'), { recursive: true })
    standIn(`[ "$last" = --version ] || tar cf "$last" -C ${scratch}/root .`)
    vi.stubEnv('PATH', `${join(scratch, 'bin')}:${process.env.PATH}`)
    await image('build', 'tools:1', '--debian', 'python3', '--suite', 'trixie')
    expect(readFileSync(join(scratch, 'words'), 'utf8').split('\n')[1]).toMatch(
      /^--variant=minbase --include=git,ca-certificates,libstdc\+\+6,bash,python3 trixie \/\S+\/root\.tar$/,
    )
    expect(readFileSync(join(scratch, 'data/images/tools%3A1/image.json'), 'utf8')).toContain('"name": "tools:1"')
  })
})
