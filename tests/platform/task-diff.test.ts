import { execFileSync } from 'node:child_process'
import { createWriteStream, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { TasksClient } from '@corral/protocol'
import {
  gitRepository,
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let platform: PlatformProcess
beforeAll(async () => {
  scratch = temporaryDirectory()
  platform = await startPlatformProcess()
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

it('the diff a client downloads is a patch: whole beyond 16 MB, with binary files and any encoding', async () => {
  const repo = await gitRepository(join(scratch.path, 'repo'))
  writeFileSync(join(repo.path, 'latin1.txt'), Buffer.from([0x63, 0xe9, 0x0a]))
  await repo.git('add', '.')
  await repo.git('commit', '-qm', 'latin1')
  const command =
    "seq 1 2600000 > numbers.txt; head -c 300000 /dev/urandom > a.bin; printf 'na\\357ve\\r\\n' > latin1.txt; ln -s a.bin link"
  const task = await platform.api.run({ repo: repo.path, task: 'Write', agent: { name: 'command', command } })
  expect(task).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes' })

  const client = new TasksClient({ baseUrl: platform.url, token: platform.token })
  const path = join(scratch.path, 'task.patch')
  await pipeline(Readable.from(client.diff(task.id)), createWriteStream(path))
  const clone = join(scratch.path, 'clone')
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: clone, encoding: 'utf8' }).trim()
  execFileSync('git', ['clone', '-q', '--branch', task.base_branch ?? '', repo.path, clone])
  git('apply', '--index', path)
  expect(git('write-tree')).toBe(await repo.git('rev-parse', `${task.commit}^{tree}`))
})
