import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type GitFixture,
  gitRepository,
  type ProgramResult,
  processesOf,
  runCorral,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let repo: GitFixture
let dataDir: string
beforeAll(async () => {
  scratch = temporaryDirectory()
  dataDir = join(scratch.path, 'data of mine')
  repo = await gitRepository(join(scratch.path, 'repo'))
  expect(await corral(['run', 'x', '--repo', repo.path, '--command', 'true'])).toMatchObject({ code: 0 })
  await endPlatform()
  writeFileSync(join(dataDir, 'api', 'state.db'), 'this is no database'.repeat(1000))
})
afterAll(async () => {
  await endPlatform()
  await scratch[Symbol.asyncDispose]()
})

const corral = (args: readonly string[]): Promise<ProgramResult> =>
  runCorral(args, { env: { PATH: process.env.PATH ?? '', HOME: scratch.path, CORRAL_DATA_DIR: dataDir } })

async function endPlatform(): Promise<void> {
  for (const { pid } of processesOf(dataDir)) {
    try {
      process.kill(pid, 'SIGTERM')
    } catch {
      // One that ended since the list was made, as its parent was told to end, is what is wanted.
    }
  }
  await waitUntil('the platform has ended', () => processesOf(dataDir).length === 0)
}

/** Every file below a directory with its content's digest and time. */
function picture(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name)
      const digest = createHash('sha256').update(readFileSync(path)).digest('hex')
      return `${path} ${digest} ${statSync(path).mtimeMs}`
    })
    .sort()
}

describe('a database that is none any more', () => {
  it('`corral up` says so, with a command that works as printed', async () => {
    const { code, stderr } = await corral(['up'])
    expect(code).toBe(3)
    expect(stderr).toMatch(/^corral: cannot open the database in .*api \(file is not a database\)\nhint: .*`mv '/)
  })

  it('`corral doctor` finds it and changes nothing', async () => {
    const before = picture(dataDir)
    const { code, stdout } = await corral(['doctor'])
    expect(code).toBe(1)
    expect(stdout).toMatch(/✗ database +cannot open the database in .*data of mine\/api \(file is not a database\)/)
    expect(picture(dataDir)).toEqual(before)
  })

  it('`corral run` fails with that error alone, not with lines of an earlier run, and the hint leads out', async () => {
    const { code, stderr } = await corral(['run', 'x', '--repo', repo.path, '--command', 'true'])
    expect(code).toBe(3)
    const [first, second, hint, ...more] = stderr.split('\n')
    expect(first).toMatch(/^corral: starting a platform in the background/)
    expect(second).toMatch(/^corral: the platform could not start: cannot open the database in .* \(file is not a/)
    expect(more).toEqual([''])
    const command = /`(mv .*)` \(docs\/troubleshooting\.md/.exec(hint ?? '')?.[1]
    execFileSync('/bin/sh', ['-c', command!])
    expect(await corral(['run', 'x', '--repo', repo.path, '--command', 'true'])).toMatchObject({ code: 0 })
    await endPlatform()
    expect((await corral(['doctor'])).stdout).toMatch(/✓ database +\d+ objects in /)
  })
})

it('`corral doctor` makes no data directory', async () => {
  const missing = join(scratch.path, 'nowhere')
  const { stdout } = await runCorral(['doctor', '--data-dir', missing], {
    env: { PATH: process.env.PATH ?? '', HOME: scratch.path },
  })
  expect(stdout).toMatch(/database +none yet/)
  expect(statSync(missing, { throwIfNoEntry: false })).toBeUndefined()
})
