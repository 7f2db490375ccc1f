import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { createRepository, type PreparedRepository } from './repository.js'
import { submoduleUrl } from './submodule-url.js'

describe('the address of a submodule', () => {
  it.each([
    ['https://h/a/top.git', '../lib.git', 'https://h/a/lib.git'],
    ['https://h/a/top.git', '../../b/lib.git', 'https://h/b/lib.git'],
    ['https://h/a/top.git/', './lib.git', 'https://h/a/top.git/lib.git'],
    ['git@h:a/top.git', '../lib.git', 'git@h:a/lib.git'],
    ['git@h:top.git', '../lib.git', 'git@h:lib.git'],
    ['ssh://git@h/a/top', '../lib', 'ssh://git@h/a/lib'],
    ['/data/top', '../lib', '/data/lib'],
    ['https://h', '../../../lib', 'https://h/lib'],
    ['https://h/a/top.git', 'https://other/lib.git', 'https://other/lib.git'],
  ])('of %s and %s is %s', (parent, url, expected) => {
    expect(submoduleUrl(parent, url)).toBe(expected)
  })
})

describe('a submodule that is asked for', () => {
  let directory: string
  let top: string
  const git = (cwd: string, ...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' },
    }).trim()

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'corral-submodule-'))
    for (const name of ['lib', 'top']) git(directory, 'init', '-q', '-b', 'main', name)
    git(join(directory, 'lib'), 'commit', '-q', '--allow-empty', '-m', 'lib')
    const origin = join(directory, 'top')
    git(origin, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', '../lib', 'lib')
    git(origin, 'commit', '-qm', 'top')
    top = join(directory, 'clone')
    git(directory, 'clone', '-q', origin, top)
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  async function prepare(options: { userConfig?: string } = {}): Promise<PreparedRepository> {
    const home = mkdtempSync(join(directory, 'home-'))
    writeFileSync(join(home, '.gitconfig'), options.userConfig ?? '')
    const env = { PATH: process.env.PATH, HOME: home }
    const repository = createRepository({
      git: createGit({ globalConfig: await writeGlobalConfig(join(home, 'config'), env), env }),
      mirrorsDirectory: join(home, 'mirrors'),
    })
    const taskDirectory = mkdtempSync(join(directory, 'task-'))
    return repository.prepare({ url: top, taskDirectory, submodules: 'direct', signal: new AbortController().signal })
  }

  it('is not read from a path of this machine that only the repository names', async () => {
    await expect(prepare()).rejects.toMatchObject({
      code: 'SubmoduleUnavailable',
      message: expect.stringMatching(/"lib" could not be had: .*\/lib is a path of this machine/) as string,
    })
  })

  it('is read from such a path where the user’s git follows them', async () => {
    const { submodules } = await prepare({ userConfig: '[protocol "file"]\n\tallow = always\n' })
    expect(submodules).toMatchObject([{ path: 'lib', commit: git(join(directory, 'lib'), 'rev-parse', 'HEAD') }])
  })

  it('comes from the clone itself where it is checked out there, at a commit of no branch', async () => {
    git(top, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'update', '--init')
    rmSync(join(directory, 'lib'), { recursive: true })
    const { submodules } = await prepare()
    expect(submodules.map(({ path }) => path)).toEqual(['lib'])
  })

  it('is named when it cannot be had', async () => {
    rmSync(join(directory, 'lib'), { recursive: true })
    await expect(prepare({ userConfig: '[protocol "file"]\n\tallow = always\n' })).rejects.toMatchObject({
      code: 'SubmoduleUnavailable',
      message: expect.stringMatching(/^the submodule "lib" could not be had: there is no git repository at/) as string,
      hint: expect.stringMatching(/git on this machine can fetch it, or leave `submodules` out/) as string,
    })
  })

  it('is only one that .gitmodules and the tree both name', async () => {
    writeFileSync(
      join(directory, 'top', '.gitmodules'),
      '[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n[submodule "gone"]\n\tpath = gone\n\turl = ../gone\n[submodule "half"]\n\turl = ../half\n',
    )
    git(join(directory, 'top'), 'commit', '-qam', 'more words than links')
    git(top, 'pull', '-q')
    const { submodules } = await prepare({ userConfig: '[protocol "file"]\n\tallow = always\n' })
    expect(submodules.map(({ path }) => path)).toEqual(['lib'])
  })
})
