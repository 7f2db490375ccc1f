import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createGit, GitError } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { pushFailure } from './git-failure.js'
import { createRepository, type Repository } from './repository.js'

let directory: string
let repository: Repository
let server: Server | undefined
const signal = new AbortController().signal

function git(cwd: string, ...args: string[]): string {
  const identity = ['-c', 'user.name=T', '-c', 'user.email=t@t']
  return execFileSync('git', [...identity, ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()
}

function makeRepository(name: string): string {
  const path = join(directory, name)
  git(directory, 'init', '-q', '-b', 'main', name)
  writeFileSync(join(path, 'a.txt'), 'one\n')
  git(path, 'add', '.')
  git(path, 'commit', '-qm', 'first')
  return path
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'corral-push-check-'))
  const globalConfig = await writeGlobalConfig(join(directory, 'config'), {})
  repository = createRepository({
    git: createGit({ globalConfig, env: { PATH: process.env.PATH, HOME: directory } }),
    mirrorsDirectory: join(directory, 'mirrors'),
  })
})
afterEach(async () => {
  server?.closeAllConnections()
  await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()))
  server = undefined
  rmSync(directory, { recursive: true, force: true })
})

const prepare = (url: string, newBranch: string, more: { ownCommits?: string[] } = {}): Promise<unknown> =>
  repository.prepare({ url, newBranch, taskDirectory: mkdtempSync(join(directory, 'task-')), signal, ...more })

it.each<{ when: string; there: string[]; branch: string; code: string | undefined; says?: RegExp }>([
  {
    when: 'another branch is where its directory would be',
    there: ['corral'],
    branch: 'corral/task-x',
    code: 'BranchConflict',
    says: /beside the branch "corral"/,
  },
  {
    when: 'it would be where the directory of another one is',
    there: ['corral/a/b'],
    branch: 'corral/a',
    code: 'BranchConflict',
    says: /beside the branch "corral\/a\/b"/,
  },
  { when: 'a branch far above is in the way', there: ['x'], branch: 'x/y/z', code: 'BranchConflict', says: /"x"/ },
  {
    when: 'branches only begin alike',
    there: ['corral-old', 'corra', 'corral/other'],
    branch: 'corral/task-x',
    code: undefined,
  },
  {
    when: 'it is checked out',
    there: [],
    branch: 'main',
    code: 'BranchCheckedOut',
    says: /"main" .* is checked out there/,
  },
])('before anything runs, the branch is looked at: $when', async ({ there, branch, code, says }) => {
  const path = makeRepository('repo')
  for (const name of there) git(path, 'branch', name)
  for (const url of [path, `file://${path}`]) {
    const prepared = prepare(url, branch)
    if (!code) await expect(prepared).resolves.toBeDefined()
    else await expect(prepared).rejects.toMatchObject({ code, message: expect.stringMatching(says!) as string })
  }
})

it('a branch that is checked out in another work tree is refused, in a bare repository it is not', async () => {
  const path = makeRepository('repo')
  git(path, 'worktree', 'add', '-q', '-b', 'elsewhere', join(directory, 'tree'))
  await expect(prepare(path, 'elsewhere')).rejects.toMatchObject({ code: 'BranchCheckedOut' })
  git(directory, 'clone', '-q', '--bare', path, 'bare.git')
  await expect(prepare(join(directory, 'bare.git'), 'main')).resolves.toBeDefined()
})

it('the branch of a former attempt is not somebody else’s', async () => {
  const path = makeRepository('repo')
  git(path, 'checkout', '-q', '-b', 'feature')
  git(path, 'commit', '-q', '--allow-empty', '-m', 'former attempt')
  const former = git(path, 'rev-parse', 'HEAD')
  git(path, 'checkout', '-q', 'main')
  await expect(prepare(path, 'feature')).rejects.toMatchObject({ code: 'BranchExists' })
  await expect(prepare(path, 'feature', { ownCommits: [former] })).resolves.toBeDefined()
})

/** Serves a repository for reading over git's simple protocol; every wish to push is answered with this status. */
async function serveReadOnly(path: string, pushStatus: number): Promise<string> {
  git(directory, 'clone', '-q', '--bare', path, 'served.git')
  git(join(directory, 'served.git'), 'update-server-info')
  const root = join(directory, 'served.git')
  server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x')
    if (searchParams.get('service') === 'git-receive-pack') return response.writeHead(pushStatus).end('no')
    try {
      response.end(readFileSync(join(root, pathname.replace('/served.git', ''))))
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/served.git`
}

it('no right to push is found before an agent runs', async () => {
  const url = await serveReadOnly(makeRepository('repo'), 403)
  await expect(prepare(url, 'work')).rejects.toMatchObject({
    code: 'PushDenied',
    message: expect.stringMatching(/may not push to http:/) as string,
  })
})

it('a remote that cannot take pushes right now is left to the push itself', async () => {
  const url = await serveReadOnly(makeRepository('repo'), 503)
  await expect(prepare(url, 'work')).resolves.toBeDefined()
})

it.each([
  { says: 'remote: error: GH006: Protected branch update failed for refs/heads/main.', code: 'BranchProtected' },
  { says: 'remote: GitLab: You are not allowed to push code to this project.', code: 'PushDenied' },
  { says: "fatal: unable to access 'https://x/': The requested URL returned error: 403", code: 'PushDenied' },
  { says: "fatal: unable to access 'https://x/': Could not resolve host: x", code: 'PushFailed' },
  { says: '! [remote rejected] x -> x (pre-receive hook declined)', code: 'PushRefused' },
])('a push that ends with "$says" is $code', ({ says, code }) => {
  expect(pushFailure(new GitError(['push'], 1, says), 'https://x', 'work')).toMatchObject({ code })
})

// Only root can give a file to another user.
it.skipIf(process.getuid?.() !== 0)(
  'names hooks of another user before an agent runs, and own ones are no problem',
  async () => {
    const path = makeRepository('hooked')
    git(directory, 'clone', '-q', '--bare', path, 'hooked.git')
    const remote = join(directory, 'hooked.git')
    const hook = join(remote, 'hooks', 'pre-receive')
    writeFileSync(hook, '#!/bin/sh\nexit 0\n', { mode: 0o755 })
    await expect(prepare(`file://${remote}`, 'corral/task-x')).resolves.toBeDefined()
    chownSync(hook, 65534, 65534)
    await expect(prepare(`file://${remote}`, 'corral/task-x')).rejects.toMatchObject({
      code: 'PushRefused',
      message: expect.stringContaining(`has the hook pre-receive, which runs on a push`) as string,
    })
    // A path is fetched into, so nothing of it runs.
    await expect(prepare(remote, 'corral/task-x')).resolves.toBeDefined()
  },
)
