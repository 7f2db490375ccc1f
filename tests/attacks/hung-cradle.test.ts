import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gitRepository, type PlatformProcess, startPlatformProcess } from '@corral/testing'
import { afterEach, beforeEach, expect, it } from 'vitest'

let platform: PlatformProcess
let cradle: number

beforeEach(async () => {
  platform = await startPlatformProcess({ args: ['--warm', '1'] })
  const { path: repo } = await gitRepository(join(platform.directory, 'repo'))
  const id = await platform.api.create({ repo, task: 'x', agent: { name: 'command', command: 'sleep 1000' } })
  await platform.api.untilPhase(id, 'RUNNING')
  cradle = Number(readFileSync(join(platform.dataDir, 'cradle', 'cradle.pid'), 'utf8'))
})
afterEach(async () => {
  process.kill(cradle, 'SIGCONT')
  await platform?.[Symbol.asyncDispose]()
})

it('the platform ends on SIGTERM while its cradle answers nothing, and the next start goes on with the task', async () => {
  process.kill(cradle, 'SIGSTOP')
  expect(await platform.stop()).not.toBeNull()
  process.kill(cradle, 'SIGCONT')
  await platform.restart()
  const { json } = await platform.api.request('GET', '/tasks')
  const [task] = (json as { tasks: { status: string }[] }).tasks
  expect(task?.status).toBe('RUNNING')
  expect(existsSync(platform.readyFile)).toBe(true)
})
