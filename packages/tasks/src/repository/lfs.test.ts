import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { scratchFiles } from '../sandbox/collected-work.js'
import { openScriptedSandbox, type ScriptedSandbox } from '../sandbox/scripted-sandbox.test-suite.js'
import { lfsObjectPath, parsePointer } from './lfs-pointer.js'
import { createRepository, type PreparedRepository, type Repository } from './repository.js'

const oidOf = (content: string): string => createHash('sha256').update(content).digest('hex')
const pointerOf = (content: string): string =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${oidOf(content)}\nsize ${Buffer.byteLength(content)}\n`

describe('a repository with Git LFS files, asked for with lfs', () => {
  const signal = new AbortController().signal
  const old = 'old content\n'.repeat(200)
  let directory: string
  let source: string
  let repository: Repository
  let taskDirectory: string
  const git = (cwd: string, ...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], {
      cwd,
      encoding: 'utf8',
      env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  const store = (): string => join(source, '.git', 'lfs', 'objects')
  const keep = (content: string): void => {
    const path = lfsObjectPath(store(), oidOf(content))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
  }

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'corral-lfs-'))
    source = join(directory, 'source')
    git(directory, 'init', '-q', '-b', 'main', source)
    writeFileSync(join(source, '.gitattributes'), '*.bin filter=lfs diff=lfs merge=lfs -text\n')
    writeFileSync(join(source, 'a.bin'), pointerOf(old))
    writeFileSync(join(source, 'plain.txt'), 'plain\n')
    git(source, 'add', '.')
    git(source, 'commit', '-qm', 'first')
    keep(old)
    const env = { PATH: process.env.PATH, HOME: directory }
    repository = createRepository({
      git: createGit({ globalConfig: await writeGlobalConfig(join(directory, 'config'), env), env }),
      mirrorsDirectory: join(directory, 'mirrors'),
    })
    taskDirectory = join(directory, 'task')
    mkdirSync(taskDirectory)
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const prepare = (): Promise<PreparedRepository> =>
    repository.prepare({ url: source, taskDirectory, lfs: true, signal })
  const open = async (): Promise<[ScriptedSandbox, PreparedRepository]> => {
    const prepared = await prepare()
    return [openScriptedSandbox({ directory, prepared, branch: 'work', lfs: true }), prepared]
  }

  it('has the contents in the sandbox, and git there sees nothing changed', async () => {
    const [box] = await open()
    expect(readFileSync(join(box.repo, 'a.bin'), 'utf8')).toBe(old)
    expect(box.agent('git status --porcelain')).toBe('')
  })

  it.each([
    ['commits them', 'git add . && git commit -qm mine'],
    ['leaves them uncommitted', ':'],
    ['removes .git as well', 'rm -rf .git'],
  ])('stores what the agent adds as LFS objects when it %s', async (_, end) => {
    const [box, prepared] = await open()
    const [changed, added] = ['changed\n'.repeat(300), 'new\n'.repeat(400)]
    box.agent(`yes changed | head -n 300 > a.bin; yes new | head -n 400 > sub.bin; echo text > note.txt\n${end}`)
    const collected = box.collect()
    expect(collected.lfs.toSorted()).toEqual([oidOf(changed), oidOf(added)].toSorted())
    const accepted = await repository.accept({
      url: source,
      taskDirectory,
      bundlePath: collected.bundlePath,
      baseCommit: prepared.commit,
      claimedCommit: collected.commit,
      lfs: true,
      signal,
    })
    expect(accepted.lfs.map(({ oid }) => oid).toSorted()).toEqual(collected.lfs.toSorted())
    const objects = accepted.lfs.map((pointer) => ({
      ...pointer,
      path: scratchFiles.lfsObject(box.scratch, pointer.oid),
    }))
    await repository.publish({
      url: source,
      taskDirectory,
      commit: collected.commit,
      branch: 'work',
      lfs: { objects, baseCommit: prepared.commit },
      signal,
    })
    for (const [path, content] of [
      ['a.bin', changed],
      ['sub.bin', added],
    ] as const) {
      expect(parsePointer(git(source, 'show', `work:${path}`))?.oid).toBe(oidOf(content))
      expect(readFileSync(lfsObjectPath(store(), oidOf(content)), 'utf8')).toBe(content)
    }
    expect(git(source, 'show', 'work:note.txt')).toBe('text\n')
    expect(git(source, 'diff', '--name-only', 'main', 'work').trim().split('\n')).toEqual([
      'a.bin',
      'note.txt',
      'sub.bin',
    ])
  })

  it('keeps the contents of what the agent left in a stash and on another branch', async () => {
    const [box] = await open()
    box.agent(`yes changed | head -n 300 > a.bin; git stash -q
      git checkout -q -b other; yes new | head -n 400 > sub.bin; git add .; git commit -qm other; git checkout -q work
      echo text > note.txt; git add .; git commit -qm mine`)
    const collected = box.collect()
    expect(collected.lfs).toEqual([])
    const oids = [oidOf('changed\n'.repeat(300)), oidOf('new\n'.repeat(400))]
    const kept = git(source, 'bundle', 'list-heads', collected.keptPath).match(/(?<=kept\/lfs\/)\w+/g)
    expect(kept?.toSorted()).toEqual(oids.toSorted())
    git(source, 'fetch', '-q', collected.keptPath, 'refs/corral/kept/*:refs/kept/*')
    expect(git(source, 'cat-file', 'blob', `refs/kept/lfs/${oids[0]}`)).toBe('changed\n'.repeat(300))
  })

  it('names the file whose content nobody has, before a sandbox is used', async () => {
    rmSync(store(), { recursive: true })
    await expect(prepare()).rejects.toMatchObject({
      code: 'LfsUnavailable',
      message: expect.stringMatching(/"a\.bin" could not be had: the repository does not have it/) as string,
    })
  })

  it('takes no file for the content whose hash is another', async () => {
    writeFileSync(lfsObjectPath(store(), oidOf(old)), old.replace('old', 'odd'))
    await expect(prepare()).rejects.toMatchObject({ code: 'LfsUnavailable' })
  })

  it('says that git-lfs is missing where a server would have to be asked', async () => {
    rmSync(store(), { recursive: true })
    git(source, 'remote', 'add', 'origin', 'https://127.0.0.1:1/x.git')
    const only = join(directory, 'bin')
    mkdirSync(only)
    execFileSync('sh', ['-c', `ln -s "$(command -v git)" ${only}/git`])
    const env = { PATH: only, HOME: directory, GIT_EXEC_PATH: withoutLfs(directory) }
    const bare = createRepository({
      git: createGit({ globalConfig: '/dev/null', env }),
      mirrorsDirectory: join(directory, 'm'),
    })
    await expect(bare.prepare({ url: source, taskDirectory, lfs: true, signal })).rejects.toMatchObject({
      code: 'LfsUnavailable',
      message: 'git-lfs is not installed on the machine of the platform',
    })
  })

  it('is left as pointers where it was not asked for', async () => {
    const prepared = await repository.prepare({ url: source, taskDirectory, signal })
    const box = openScriptedSandbox({ directory, prepared, branch: 'work' })
    expect(readFileSync(join(box.repo, 'a.bin'), 'utf8')).toBe(pointerOf(old))
    expect(existsSync(join(box.scratch, 'lfs'))).toBe(false)
    expect(statSync(join(box.repo, 'plain.txt')).size).toBe(6)
  })
})

/** git's own programs without git-lfs, wherever that is installed. */
function withoutLfs(directory: string): string {
  const from = execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim()
  const to = join(directory, 'exec')
  mkdirSync(to)
  execFileSync('sh', ['-c', 'for f in "$0"/*; do case $f in *git-lfs*) ;; *) ln -s "$f" "$1"/ ;; esac; done', from, to])
  return to
}
