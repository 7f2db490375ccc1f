import { execFileSync } from 'node:child_process'
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '@corral/testing'
import { expect, it } from 'vitest'
import { maxStrays, strayFilesScript } from './stray-files.js'

it('names what set-up left outside of the repository, and neither lock files nor what tools leave behind', async () => {
  await using root = temporaryDirectory()
  const at = (path: string): string => join(root.path, path)
  for (const directory of ['tmp', 'tmp/data', 'tmp/go-build7', 'workspace', 'workspace/repo'])
    mkdirSync(at(directory), { recursive: true })
  writeFileSync(at('tmp/model.bin'), 'weights')
  writeFileSync(at('tmp/uv-97af34e6d23ed00c.lock'), '')
  writeFileSync(at('tmp/other.lock'), '')
  writeFileSync(at('workspace/fixtures.tar'), 'rows')
  const env = {
    PATH: process.env.PATH,
    TEMPORARY: at('tmp'),
    REPO: at('workspace/repo'),
    ROOT: at('root'),
    HOME: at('home'),
  }
  const said = execFileSync('/bin/sh', ['-c', strayFilesScript], { env, encoding: 'utf8' })
  expect(said.trim().split('\n')).toEqual([at('tmp/data'), at('tmp/model.bin'), at('workspace/fixtures.tar')])
})

it('names what set-up left in /opt and beside it, and not what the sandbox began with', async () => {
  await using root = temporaryDirectory()
  const at = (path: string): string => join(root.path, path)
  const begun = ['dev', 'etc/ssl', 'home/agent', 'opt/corral', 'tmp', 'var', 'workspace/repo/.git']
  for (const directory of begun) mkdirSync(at(directory), { recursive: true })
  writeFileSync(at('workspace/repo/.git/HEAD'), 'ref: refs/heads/main')
  for (const each of ['etc/ssl', 'opt/corral']) utimesSync(at(each), 1, 1)
  utimesSync(at('workspace/repo/.git/HEAD'), 2, 2)
  for (const directory of ['opt/sdk/bin', 'data']) mkdirSync(at(directory), { recursive: true })
  writeFileSync(at('etc/tool.conf'), 'a=b')
  writeFileSync(at('home/agent/kept'), 'a')
  const env = {
    ...{ PATH: process.env.PATH, TEMPORARY: at('tmp'), REPO: at('workspace/repo') },
    ...{ ROOT: root.path, HOME: at('home/agent') },
  }
  const said = execFileSync('/bin/sh', ['-c', strayFilesScript], { env, encoding: 'utf8' })
  expect(said.trim().split('\n')).toEqual([at('data'), at('etc/tool.conf'), at('opt/sdk')])
})

it('ends after a hundred of the files that set-up left', async () => {
  await using root = temporaryDirectory()
  for (let each = 0; each < maxStrays + 10; each++)
    mkdirSync(join(root.path, 'tmp', `left-${each}`), { recursive: true })
  const at = (path: string): string => join(root.path, path)
  const env = {
    PATH: process.env.PATH,
    TEMPORARY: at('tmp'),
    REPO: at('workspace/repo'),
    ROOT: at('root'),
    HOME: at('home'),
  }
  const said = execFileSync('/bin/sh', ['-c', strayFilesScript], { env, encoding: 'utf8' })
  expect(said.trim().split('\n')).toHaveLength(maxStrays)
})
