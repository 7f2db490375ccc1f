import { execFileSync, spawnSync } from 'node:child_process'
import { createReadStream, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SandboxError } from './sandbox-error.js'
import type { SandboxFiles } from './sandbox-files.js'
import { SandboxGit } from './sandbox-git.js'
import type { SandboxProcess } from './sandbox-process.js'

let repository: string
beforeEach(() => {
  repository = mkdtempSync(join(tmpdir(), 'corral-git-'))
  execFileSync('git', ['init', '-q', repository])
})
afterEach(() => rmSync(repository, { recursive: true, force: true }))

const nothingIsSent = (): never => {
  throw new Error('something was sent')
}
const git = new SandboxGit({ write: nothingIsSent } as unknown as SandboxFiles, nothingIsSent)

it.each<{ what: string; commits: boolean; ref?: string; says: string }>([
  { what: 'a branch that is not there', commits: true, ref: 'nope', says: 'branch, tag or commit "nope"' },
  { what: 'a repository without a commit', commits: false, says: 'commit at its HEAD' },
])('pushing $what names the repository and what it lacks, and sends nothing', async ({ commits, ref, says }) => {
  const author = ['-c', 'user.name=t', '-c', 'user.email=t@example.com']
  if (commits) execFileSync('git', ['-C', repository, ...author, 'commit', '-q', '--allow-empty', '-m', 'one'])
  const pushing = git.push({ repository, directory: '/work', ...(ref === undefined ? {} : { ref }) })
  await expect(pushing).rejects.toMatchObject({
    code: 'NotFound',
    message: `repository "${repository}" has no ${says}`,
  })
})

describe('in a sandbox', () => {
  const author = ['-c', 'user.name=t', '-c', 'user.email=t@example.com']
  const commit = (where: string, message: string): string => {
    execFileSync('git', ['-C', where, ...author, 'commit', '-q', '--allow-empty', '-m', message])
    return execFileSync('git', ['-C', where, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).trim()
  }
  let inside: string
  const written = new Set<string>()
  beforeEach(() => {
    inside = mkdtempSync(join(tmpdir(), 'corral-inside-'))
  })
  afterEach(() => {
    vi.unstubAllEnvs()
    rmSync(inside, { recursive: true, force: true })
  })

  /** This machine as the sandbox: the same git, the same shell. */
  const files = {
    write: (path: string, data: AsyncIterable<Uint8Array> | Uint8Array) => {
      written.add(path)
      return writeFile(path, data)
    },
    readStream: (path: string) => createReadStream(path),
    remove: (path: string) => rm(path, { force: true }),
  }
  const exec = ([program = '', ...args]: readonly string[]) => ({
    ok: async () => {
      const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' })
      if (status === 0) return
      const details = { exitCode: status, stdout: '', stderr: stderr.trim() }
      throw new SandboxError('CommandFailed', `"${program}" ended with ${status}`, { details })
    },
  })
  const there = new SandboxGit(files as unknown as SandboxFiles, exec as unknown as () => SandboxProcess)

  it('a shallow clone, as CI makes it, arrives, and so do the commits that are made on it', async () => {
    commit(repository, 'one')
    const head = commit(repository, 'two')
    const clone = join(inside, 'clone')
    execFileSync('git', ['clone', '-q', '--depth', '1', `file://${repository}`, clone])
    const directory = join(inside, 'tree')
    expect(await there.push({ repository: clone, directory })).toBe(head)
    expect(await there.push({ repository: clone, directory })).toBe(head)
    expect(execFileSync('git', ['-C', directory, 'log', '--format=%s'], { encoding: 'utf8' })).toBe('two\n')
    const made = commit(directory, 'three')
    for (const target of [clone, repository]) {
      expect(await there.pull({ directory, repository: target, as: 'refs/heads/made' })).toBe(made)
    }
  })

  it('several copies of one commit are pushed and pulled at once, and leave nothing behind', async () => {
    const head = commit(repository, 'one')
    const trees = ['a', 'b', 'c'].map((name) => join(inside, name))
    written.clear()
    const pushed = await Promise.all(trees.map((directory) => there.push({ repository, directory })))
    expect(pushed).toEqual([head, head, head])
    // One name for two bundles would let the first that is done remove that of the other.
    expect(written.size).toBe(3)
    const [directory = ''] = trees
    const names = ['x', 'y', 'z'].map((name) => `refs/heads/${name}`)
    const pulled = await Promise.all(names.map((as) => there.pull({ directory, repository, as })))
    expect(pulled).toEqual([head, head, head])
    expect([...written].filter((path) => existsSync(path))).toEqual([])
    expect(execFileSync('git', ['-C', directory, 'for-each-ref', 'refs/corral'], { encoding: 'utf8' })).toBe('')
  })

  it('a program that git runs as a hook carries the repository it names', async () => {
    const head = commit(repository, 'one')
    vi.stubEnv('GIT_DIR', join(inside, 'other/.git'))
    vi.stubEnv('GIT_INDEX_FILE', join(inside, 'index'))
    const inClean = new SandboxGit(
      files as unknown as SandboxFiles,
      (([program = '', ...args]: readonly string[]) =>
        exec([
          '/usr/bin/env',
          '-u',
          'GIT_DIR',
          '-u',
          'GIT_INDEX_FILE',
          program,
          ...args,
        ])) as unknown as () => SandboxProcess,
    )
    expect(await inClean.push({ repository, directory: join(inside, 'tree') })).toBe(head)
    expect(await inClean.pull({ directory: join(inside, 'tree'), repository, as: 'refs/heads/back' })).toBe(head)
  })

  it('what git says inside is the failure, and not the script that called it', async () => {
    commit(repository, 'one')
    const directory = join(inside, 'tree')
    await there.push({ repository, directory })
    const pulling = there.pull({ directory, repository, as: 'refs/heads/made', ref: 'nope' })
    await expect(pulling).rejects.toMatchObject({
      code: 'CommandFailed',
      message: expect.stringMatching(/^git in "[^"]*" of the sandbox: fatal: nope/),
    })
  })
})
