import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '@corral/testing'
import { expect, it } from 'vitest'
import { createGit } from './git.js'
import { writeGlobalConfig } from './global-config.js'

interface Row {
  when: string
  /** The user's own ~/.gitconfig. */
  config?: string
  system?: string
  env?: Record<string, string>
  runs: string
}

/** A program that writes how it was called, in place of ssh. */
const at = (name: string): string => `{bin}/${name}`

it.each<Row>([
  { when: 'nothing says which', runs: 'ssh -oBatchMode=yes host' },
  {
    when: 'the user’s configuration names one',
    config: `[core]\n\tsshCommand = ${at('mine')} -i key`,
    runs: 'mine -i key host',
  },
  {
    when: 'the configuration names one for these addresses alone',
    config: `[url "ssh://host/"]\n\tinsteadOf = work:\n[includeIf "hasconfig:remote.*.url:ssh://none/**"]\n\tpath = none\n[core]\n\tsshCommand = ${at('mine')}`,
    runs: 'mine host',
  },
  {
    when: 'the machine’s configuration names one',
    system: `[core]\n\tsshCommand = ${at('mine')} -4`,
    runs: 'mine -4 host',
  },
  {
    when: 'the environment names a command',
    config: `[core]\n\tsshCommand = none`,
    env: { GIT_SSH_COMMAND: `${at('mine')} -v` },
    runs: 'mine -v host',
  },
  { when: 'the environment names a program', env: { GIT_SSH: at('mine') }, runs: 'mine host' },
])('git uses the ssh of the user when $when', async ({ config = '', system, env = {}, runs }) => {
  await using scratch = temporaryDirectory()
  const bin = scratch.path
  const filled = (text: string): string => text.replaceAll('{bin}', bin)
  for (const name of ['ssh', 'mine']) {
    writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} $*" >> ${join(bin, 'called')}\nexit 1\n`)
    chmodSync(join(bin, name), 0o755)
  }
  writeFileSync(join(bin, '.gitconfig'), filled(config))
  writeFileSync(join(bin, 'system'), filled(system ?? ''))
  const all = {
    PATH: `${bin}:${process.env.PATH}`,
    HOME: bin,
    GIT_CONFIG_SYSTEM: join(bin, 'system'),
    ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, filled(value)])),
  }
  const git = createGit({ globalConfig: await writeGlobalConfig(join(bin, 'config'), all), env: all })

  await expect(git(['ls-remote', 'ssh://host/repository'])).rejects.toThrow()

  const [first = ''] = readFileSync(join(bin, 'called'), 'utf8')
    .split('\n')
    .filter((line) => !line.includes(' -G '))
  expect(first.replace(/ -o SendEnv=GIT_PROTOCOL/, '').replace(/ git-upload-pack.*/, '')).toBe(runs)
})
