import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '@corral/testing'
import { expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { createRepository } from './repository.js'

interface Row {
  when: string
  /** The user's own ~/.gitconfig. */
  config?: string
  env?: Record<string, string>
}

const { signal } = new AbortController()

it.each<Row>([
  { when: 'the user’s git looks into no bare repository by itself', config: '[safe]\n\tbareRepository = explicit\n' },
  { when: 'new repositories of the user have SHA-256', env: { GIT_DEFAULT_HASH: 'sha256' } },
  // What this git does not know yet it passes over.
  {
    when: 'new repositories of the user have SHA-256 and refs in a table, by configuration',
    config: '[init]\n\tdefaultObjectFormat = sha256\n\tdefaultRefFormat = reftable\n',
  },
])('a repository is brought into a sandbox where $when', async ({ config = '', env = {} }) => {
  await using scratch = temporaryDirectory()
  const home = scratch.path
  const bare = join(home, 'source.git')
  const plain = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@t', `--git-dir=${bare}`, ...args], {
      encoding: 'utf8',
    }).trim()
  plain('init', '-q', '--bare', '-b', 'main')
  const tree = plain('hash-object', '-t', 'tree', '-w', '/dev/null')
  plain('update-ref', 'refs/heads/main', plain('commit-tree', tree, '-m', 'first'))

  writeFileSync(join(home, '.gitconfig'), config)
  const user = { PATH: process.env.PATH, HOME: home, ...env }
  const repository = createRepository({
    git: createGit({ globalConfig: await writeGlobalConfig(join(home, 'config'), user), env: user }),
    mirrorsDirectory: join(home, 'mirrors'),
  })
  for (const url of [bare, `file://${bare}`]) {
    const prepared = await repository.prepare({
      url,
      taskDirectory: mkdtempSync(join(home, 'task-')),
      newBranch: 'work',
      signal,
    })
    expect(prepared.commit).toBe(plain('rev-parse', 'main'))
    expect(existsSync(prepared.bundlePath)).toBe(true)
  }
})
