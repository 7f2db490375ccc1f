import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGit, type Git } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { createRepository, type PreparedRepository, type Repository } from './repository.js'

let directory: string
let source: string
let repository: Repository
let commands: string[]
const { signal } = new AbortController()

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], {
    cwd,
    encoding: 'utf8',
    // Where git-lfs is installed for every user, it would make pointers of the pointers written here.
    env: { ...process.env, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
  }).trim()

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'corral-bundle-'))
  source = join(directory, 'source')
  git(directory, 'init', '-q', '-b', 'main', source)
  for (const name of ['one', 'two', 'three']) {
    writeFileSync(join(source, 'a.txt'), `${name}\n`)
    git(source, 'add', '.')
    git(source, 'commit', '-qm', name)
  }
  git(source, 'tag', '-am', 'version 1', 'v1', 'HEAD~1')
  const real = createGit({
    globalConfig: await writeGlobalConfig(join(directory, 'config'), process.env),
    env: process.env,
  })
  commands = []
  const counted: Git = (args, options) => {
    commands.push(args[0] ?? '')
    return real(args, options)
  }
  repository = createRepository({ git: counted, mirrorsDirectory: join(directory, 'mirrors') })
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

async function prepare(url = source): Promise<PreparedRepository> {
  commands.length = 0
  return repository.prepare({ url, taskDirectory: mkdtempSync(join(directory, 'task-')), signal })
}
const heads = (bundle: string): string[] =>
  git('/', 'bundle', 'list-heads', bundle)
    .split('\n')
    .map((line) => line.split(' ')[1]!)
    .filter((ref) => ref.startsWith('refs/tags/'))
const historyOf = (prepared: PreparedRepository): number => {
  const box = mkdtempSync(join(directory, 'clone-'))
  git(box, 'init', '-q', '--bare')
  git(box, 'bundle', 'unbundle', prepared.bundlePath)
  return Number(git(box, 'rev-list', '--count', prepared.commit))
}

describe('a base that is asked for again', () => {
  it('costs one look at the repository and no copy when nothing changed', async () => {
    const first = await prepare()
    expect(commands).toContain('pack-objects')
    const second = await prepare()
    // The configuration is read again while it is younger than a second.
    expect(commands.filter((name) => name !== 'config')).toEqual(['rev-parse', 'ls-remote'])
    expect(statSync(second.bundlePath).ino).toBe(statSync(first.bundlePath).ino)
    expect(second.commit).toBe(first.commit)
  })

  it('is made anew for a new commit, and only the last ones are kept', async () => {
    await prepare()
    for (let round = 0; round < 3; round++) {
      git(source, 'commit', '-q', '--allow-empty', '-m', 'more')
      const { commit } = await prepare()
      expect(commit).toBe(git(source, 'rev-parse', 'main'))
    }
    const [mirror] = readdirSync(join(directory, 'mirrors'))
    expect(readdirSync(join(directory, 'mirrors', mirror!, 'corral-bundles'))).toHaveLength(2)
  })

  it('has the tags that are there now: new, moved and deleted ones', async () => {
    expect(heads((await prepare()).bundlePath)).toEqual(['refs/tags/v1'])
    git(source, 'tag', 'v2')
    git(source, 'tag', '-fam', 'moved', 'v1', 'HEAD')
    const moved = await prepare()
    expect(heads(moved.bundlePath).sort()).toEqual(['refs/tags/v1', 'refs/tags/v2'])
    expect(git('/', 'bundle', 'list-heads', moved.bundlePath)).toContain(git(source, 'rev-parse', 'v1'))
    git(source, 'tag', '-d', 'v1')
    expect(heads((await prepare()).bundlePath)).toEqual(['refs/tags/v2'])
  })

  it('has the whole history once a shallow clone was completed', async () => {
    const shallow = join(directory, 'shallow')
    git(directory, 'clone', '-q', '--depth=1', `file://${source}`, shallow)
    const cut = await prepare(shallow)
    expect(await repository.shallowCommits(shallow)).toEqual([cut.commit])
    git(shallow, 'fetch', '-q', '--unshallow')
    expect(historyOf(await prepare(shallow))).toBe(3)
    expect(await repository.shallowCommits(shallow)).toEqual([])
  })

  it('is read again when the mirror forgot what it holds', async () => {
    const first = await prepare()
    const [mirror] = readdirSync(join(directory, 'mirrors'))
    writeFileSync(join(directory, 'mirrors', mirror!, 'corral-state.json'), '{"refs":')
    expect((await prepare()).commit).toBe(first.commit)
    expect(commands).toContain('fetch')
  })

  it('may be another repository with other hashes at the same address', async () => {
    await prepare()
    rmSync(source, { recursive: true })
    git(directory, 'init', '-q', '-b', 'main', '--object-format=sha256', source)
    git(source, 'commit', '-q', '--allow-empty', '-m', 'anew')
    expect((await prepare()).commit).toBe(git(source, 'rev-parse', 'main'))
  })
})

describe('what a base needs beyond its objects', () => {
  const commitAll = (linked: string): void => {
    git(source, 'add', '-A')
    git(source, 'update-index', '--add', '--cacheinfo', `160000,${'c'.repeat(40)},${linked}`)
    git(source, 'commit', '-qm', 'facts')
  }
  const pointer = (oid: string, size: number): string =>
    `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}\n`

  it('is nothing for a plain repository', async () => {
    expect((await prepare()).facts).toEqual({ submodules: [], filters: [], usesLfs: false, lfs: [] })
  })

  it('is found in attributes, pointers and links', async () => {
    writeFileSync(
      join(source, '.gitattributes'),
      '# x filter=none\n*.psd filter=lfs diff=lfs -text\n*.c filter=indent\n',
    )
    writeFileSync(join(source, 'ö.psd'), pointer('a'.repeat(64), 7))
    writeFileSync(join(source, 'not.psd'), `${pointer('b'.repeat(64), 7)}more\n`)
    writeFileSync(join(source, '.gitmodules'), '[submodule "lib"]\n\tpath = libs/l\n\turl = ../l.git\n')
    commitAll('libs/l')
    expect((await prepare()).facts).toEqual({
      submodules: [{ name: 'lib', path: 'libs/l', url: '../l.git', commit: 'c'.repeat(40) }],
      filters: ['indent'],
      usesLfs: true,
      lfs: [{ path: 'ö.psd', oid: 'a'.repeat(64), sizeBytes: 7 }],
    })
  })

  it('leaves out submodules whose name leads out of the repository', async () => {
    writeFileSync(join(source, '.gitmodules'), '[submodule "../../x"]\n\tpath = l\n\turl = ../l.git\n')
    commitAll('l')
    expect((await prepare()).facts.submodules).toEqual([])
  })
})
