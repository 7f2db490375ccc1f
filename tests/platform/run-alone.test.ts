import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  corralProgram,
  type GitFixture,
  gitRepository,
  type HostSnapshot,
  hostSnapshot,
  leftoversOf,
  type ProgramResult,
  processesOf,
  runCorral,
  runProgram,
  sandboxProcesses,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let before: HostSnapshot
let repo: GitFixture
let dataDir: string

beforeAll(async () => {
  before = hostSnapshot()
  scratch = temporaryDirectory()
  dataDir = join(scratch.path, 'data')
  repo = await gitRepository(join(scratch.path, 'repo'))
})
afterAll(async () => {
  for (const { pid } of processesOf(dataDir)) process.kill(pid, 'SIGTERM')
  await waitUntil('nothing is left', () => processesOf(dataDir).length + sandboxProcesses(dataDir).length === 0)
  await scratch[Symbol.asyncDispose]()
})

const environment = (): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: scratch.path,
  CORRAL_DATA_DIR: dataDir,
})
const run = (name: string): Promise<ProgramResult> =>
  runCorral(['run', `Make ${name}`, '--repo', repo.path, '--branch', name, '--command', `echo ${name} > ${name}`], {
    env: environment(),
  })
const ready = (): { pid: number } => JSON.parse(readFileSync(join(dataDir, 'ready.json'), 'utf8')) as { pid: number }

it('`corral run` without a platform starts one for all who come at once, and leaves it to the next', async () => {
  const [one, two] = await Promise.all([run('one'), run('two')])
  for (const { code, stdout, stderr } of [one, two]) {
    expect(`${code} ${stderr}`).toMatch(
      /^0 corral: starting a platform in the background \(it ends itself after 10 idle/,
    )
    expect(stdout).toContain('1 file changed')
  }
  const { pid } = ready()
  const third = await run('three')
  expect([third.code, third.stderr]).toEqual([0, ''])
  expect(ready().pid).toBe(pid)
  for (const name of ['one', 'two', 'three']) expect(await repo.show(name, name)).toBe(name)

  process.kill(pid, 'SIGTERM')
  await waitUntil('it ends', () => !existsSync(join(dataDir, 'ready.json')) && processesOf(dataDir).length === 0)
  expect(leftoversOf(dataDir, before)).toEqual([])
})

it('a platform that is told to ends itself when nothing is left to do, and leaves nothing behind', async () => {
  const { code, stdout } = await runCorral(['up', '--warm', '1', '--idle-exit', '1s'], {
    env: environment(),
  })
  expect(code).toBe(0)
  expect(stdout).toMatch(/corral is up[\s\S]*stopping\n$/)
  expect(leftoversOf(dataDir, before)).toEqual([])
})

it('a platform that was to end when idle is told to stay by `corral up -d`', async () => {
  const idle = runCorral(['up', '--warm', '0', '--idle-exit', '1h'], { env: environment() })
  await waitUntil('it is up', () => existsSync(join(dataDir, 'ready.json')))
  const { pid } = ready()
  const stay = join(dataDir, 'stay')
  await waitUntil('what an earlier one was told is gone', () => !existsSync(stay))
  const said = await runCorral(['up', '-d'], { env: environment() })
  expect([said.code, said.stdout]).toEqual([0, expect.stringMatching(/^it runs already: /)])
  expect(existsSync(stay)).toBe(true)
  process.kill(pid, 'SIGTERM')
  expect(await idle).toMatchObject({ code: 0 })
})

it.runIf(process.getuid?.() === 0)('`corral run` works under a umask that lets others read nothing', async () => {
  const place = join(scratch.path, 'strict', 'data')
  const words = ['run', 'Make it', '--repo', repo.path, '--branch', 'strict', '--command', 'echo x > x']
  const typed = [process.execPath, corralProgram, ...words].map((word) => `'${word}'`).join(' ')
  const env = { ...environment(), CORRAL_DATA_DIR: place }
  const { code, stdout } = await runProgram('/bin/sh', ['-c', `umask 077; ${typed}`], { env })
  expect([code, stdout]).toEqual([0, expect.stringContaining('1 file changed')])
  expect(await runCorral(['down'], { env })).toMatchObject({ code: 0 })
  await waitUntil('nothing of it is left', () => processesOf(place).length === 0)
})

it('a platform that cannot start is a failure of the run, with the reason', async () => {
  const { code, stderr } = await runCorral(['run', 'x', '--repo', repo.path, '--command', 'true'], {
    env: { ...environment(), CORRAL_DATA_DIR: join(repo.path, 'README.md') },
  })
  expect(code).toBe(3)
  expect(stderr).toMatch(/README\.md cannot be used as the data directory/)
})
