import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runProgram } from './run-program.js'

export type FileTree = Readonly<Record<string, string>>

/** A repository of a test, with a work tree or bare. */
export interface GitFixture {
  readonly path: string
  /** Runs git in it; throws when git fails. */
  git(...args: string[]): Promise<string>
  /** The text of a file on a branch. */
  show(branch: string, path: string): Promise<string>
  branches(): Promise<string[]>
  /** How often a branch was written, by its reflog. */
  writesOf(branch: string): number
  /** Its refs, HEAD and status: to tell whether anything was touched. */
  fingerprint(): Promise<string>
}

const identity = {
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@localhost',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@localhost',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
}

/** A repository with one commit on `main`. */
export async function gitRepository(
  path: string,
  files: FileTree = { 'README.md': '# Sample\n' },
): Promise<GitFixture> {
  mkdirSync(path, { recursive: true })
  const fixture = fixtureAt(path, join(path, '.git'))
  await fixture.git('init', '--quiet', '--initial-branch=main')
  await fixture.git('config', 'core.logAllRefUpdates', 'always')
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), content)
  }
  await fixture.git('add', '--all')
  await fixture.git('commit', '--quiet', '-m', 'first')
  return fixture
}

/** A bare remote with one commit on `main` that keeps a reflog of every branch. */
export async function bareRemote(path: string, files?: FileTree): Promise<GitFixture> {
  const seed = await gitRepository(`${path}.seed`, files)
  await seed.git('clone', '--quiet', '--bare', seed.path, path)
  const fixture = fixtureAt(path, path)
  await fixture.git('config', 'core.logAllRefUpdates', 'always')
  await fixture.git('config', 'http.receivepack', 'true')
  return fixture
}

function fixtureAt(path: string, gitDirectory: string): GitFixture {
  const git = async (...args: string[]): Promise<string> => {
    const result = await runProgram('git', args, { cwd: path, env: { PATH: process.env.PATH, ...identity } })
    if (result.code !== 0) throw new Error(`git ${args.join(' ')}: ${result.stderr}`)
    return result.stdout.trim()
  }
  return {
    path,
    git,
    show: (branch, file) => git('show', `${branch}:${file}`),
    branches: async () => (await git('for-each-ref', '--format=%(refname:short)', 'refs/heads')).split('\n'),
    writesOf(branch) {
      const log = join(gitDirectory, 'logs/refs/heads', branch)
      return existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n').length : 0
    },
    fingerprint: async () =>
      [
        await git('rev-parse', 'HEAD'),
        await git('symbolic-ref', 'HEAD'),
        await git('for-each-ref'),
        path === gitDirectory ? '' : await git('status', '--porcelain'),
      ].join('\n'),
  }
}
