import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createGit, type Git } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { configuredIdentity, corralIdentity, identitiesOf } from './identity.js'

let home: string
let git: Git
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'identity-'))
})
afterEach(() => rmSync(home, { recursive: true }))

const jane = { name: 'Jane Doe', email: 'jane@example.com' }

/** git of a user with this global configuration and this environment, and a repository of theirs. */
async function user(config: string, env: Record<string, string> = {}): Promise<string> {
  writeFileSync(join(home, '.gitconfig'), config)
  const all = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1', ...env }
  git = createGit({ globalConfig: await writeGlobalConfig(join(home, 'git'), all), env: all })
  const repository = join(home, 'repo')
  mkdirSync(repository)
  await git(['init', '--quiet'], { cwd: repository })
  return repository
}

const global = '[user]\n\tname = Jane Doe\n\temail = jane@example.com\n'

it.each<{ when: string; config: string; env?: Record<string, string>; local?: string; is: object | undefined }>([
  { when: 'git is configured', config: global, is: jane },
  { when: 'nothing is', config: '', is: undefined },
  { when: 'there is a name without an address', config: '[user]\n\tname = Jane Doe\n', is: undefined },
  {
    when: 'the repository has an address of its own',
    config: global,
    local: 'jane@work.example',
    is: { ...jane, email: 'jane@work.example' },
  },
  {
    when: 'the environment names somebody else',
    config: global,
    env: { GIT_AUTHOR_NAME: 'Bot', GIT_AUTHOR_EMAIL: 'bot@example.com' },
    is: { name: 'Bot', email: 'bot@example.com' },
  },
])('when $when', async ({ config, env, local, is }) => {
  const repository = await user(config, env)
  if (local) await git(['config', 'user.email', local], { cwd: repository })
  expect(await configuredIdentity(git, repository)).toEqual(is)
  expect(await configuredIdentity(git, join(home, 'no-such-place'))).toEqual(local ? jane : is)
})

it.each([
  { given: {}, author: corralIdentity, committer: corralIdentity },
  { given: { author: jane }, author: jane, committer: corralIdentity },
  { given: { author: jane, committer: jane }, author: jane, committer: jane },
])('a task with $given', ({ given, ...is }) => {
  const spec = { repository: { url: '/r' }, prompt: 'p', agent: { name: 'command' }, ...given }
  expect(identitiesOf({ spec })).toEqual(is)
})
