import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { openScriptedSandbox } from '../sandbox/scripted-sandbox.test-suite.js'
import { createRepository } from './repository.js'
import { parseCommit } from './sign-commits.js'

const { signal } = new AbortController()
const committer = { name: 'Jane Doe', email: 'jane@example.com' }
let directory: string
let source: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-sign-'))
  source = join(directory, 'source')
  mkdirSync(source)
  git('init', '-q', '-b', 'main')
  writeFileSync(join(source, 'a.txt'), 'one\n')
  git('add', '.')
  git('commit', '-qm', 'first')
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function git(...args: string[]): string {
  const env = { PATH: process.env.PATH, HOME: directory, GIT_CONFIG_NOSYSTEM: '1' }
  const identity = ['-c', 'user.name=T', '-c', 'user.email=t@localhost']
  return execFileSync('git', [...identity, ...args], { cwd: source, env, encoding: 'utf8' }).trim()
}

/** A user who signs with an ssh key. */
function userConfig(): string {
  const key = join(directory, 'key')
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', key])
  const signers = join(directory, 'signers')
  writeFileSync(signers, `jane@example.com ${readFileSync(`${key}.pub`, 'utf8')}`)
  const config = join(directory, 'gitconfig')
  const ssh = `[gpg "ssh"]\n\tallowedSignersFile = ${signers}\n`
  writeFileSync(config, `[gpg]\n\tformat = ssh\n[user]\n\tsigningkey = ${key}.pub\n${ssh}`)
  return config
}

/** An agent's result, accepted. */
async function accepted(globalConfig: string, script: string) {
  const env = { PATH: process.env.PATH, HOME: directory, GIT_CONFIG_NOSYSTEM: '1' }
  const repository = createRepository({
    git: createGit({ globalConfig, env }),
    mirrorsDirectory: join(directory, 'mirrors'),
  })
  const taskDirectory = join(directory, 'task')
  mkdirSync(taskDirectory)
  const prepared = await repository.prepare({ url: source, taskDirectory, signal })
  const box = openScriptedSandbox({ directory, prepared, branch: 'work' })
  box.agent(script)
  const collected = box.collect()
  const result = { url: source, taskDirectory, baseCommit: prepared.commit, signal }
  await repository.accept({ ...result, bundlePath: collected.bundlePath, claimedCommit: collected.commit })
  return { repository, result, commit: collected.commit }
}

it('signs every commit of a result with the key of the user, and changes nothing else of it', async () => {
  const config = userConfig()
  const { repository, result, commit } = await accepted(
    config,
    `git config user.name Agent; git config user.email agent@localhost
     git checkout -q -b side; echo b > b.txt; git add .; git commit -qm "Side work" -m "With a body."
     git checkout -q work; echo c > c.txt; git add .; git -c i18n.commitEncoding=ISO-8859-1 commit -qm 'Own work'
     git merge -q --no-ff -m 'Merge side' side; echo d > d.txt`,
  )
  const signed = await repository.sign({ ...result, commit, committer })
  // The bundle is what the record keeps: it passes like one that came out of a sandbox.
  await repository.accept({ ...result, bundlePath: signed.bundlePath, claimedCommit: signed.commit })
  git('fetch', '-q', signed.bundlePath, '+refs/heads/corral-result:refs/heads/signed')
  const verified = (format: string): string =>
    git('-c', `gpg.ssh.allowedSignersFile=${join(directory, 'signers')}`, 'log', `--format=${format}`, 'main..signed')
  expect(verified('%G? %GS %cn <%ce>').split('\n')).toEqual(
    Array.from({ length: 4 }, () => 'G jane@example.com Jane Doe <jane@example.com>'),
  )
  expect(verified('%an|%s|%p').split('\n')).toEqual([
    expect.stringMatching(/^Corral\|Do the work\|\w+$/),
    expect.stringMatching(/^Agent\|Merge side\|\w+ \w+$/),
    expect.stringMatching(/^Agent\|Own work\|\w+$/),
    expect.stringMatching(/^Agent\|Side work\|\w+$/),
  ])
  expect(verified('%s|%e').split('\n').slice(1)).toEqual(['Merge side|', 'Own work|ISO-8859-1', 'Side work|'])
  expect(verified('%b')).toContain('With a body.')
  expect(git('ls-tree', '-r', '--name-only', 'signed').split('\n')).toEqual(['a.txt', 'b.txt', 'c.txt', 'd.txt'])
  expect(git('merge-base', 'main', 'signed')).toBe(git('rev-parse', 'main'))
})

it('says why where there is no key, and leaves the result as it is', async () => {
  const config = join(directory, 'gitconfig')
  writeFileSync(config, `[gpg]\n\tformat = ssh\n[user]\n\tsigningkey = ${join(directory, 'missing.pub')}\n`)
  const { repository, result, commit } = await accepted(config, 'echo b > b.txt')
  await expect(repository.sign({ ...result, commit, committer })).rejects.toMatchObject({
    code: 'SigningFailed',
    message: expect.stringMatching(/could not be signed: .*missing\.pub/),
  })
  await repository.publish({ ...result, commit, branch: 'work' })
  expect(git('rev-parse', 'work')).toBe(commit)
})

it('reads a commit by its bytes: message, encoding and dates stay', () => {
  const head = 'tree t1\nparent p1\nparent p2\nauthor A B <a@b> 1700000000 +0130\ncommitter C <c@d> 1700000001 -0500'
  const raw = Buffer.concat([
    Buffer.from(`${head}\nencoding ISO-8859-1\ngpgsig -----BEGIN\n tree fake\n -----END\n\n`),
    Buffer.from([0xe4, 0x0a, 0x0a, 0x78]),
  ])
  expect(parseCommit(raw)).toEqual({
    tree: 't1',
    parents: ['p1', 'p2'],
    author: { name: 'A B', email: 'a@b', at: '@1700000000 +0130' },
    committedAt: '@1700000001 -0500',
    encoding: 'ISO-8859-1',
    message: Buffer.from([0xe4, 0x0a, 0x0a, 0x78]),
  })
})
