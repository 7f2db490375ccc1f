import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { rememberIdentities } from './identity-cache.js'

let home: string
let nowMs: number
let asked: number
let find: ReturnType<typeof rememberIdentities>
const repository = (): string => join(home, 'repo')
const waited = (ms: number): void => {
  nowMs += ms
}
const configOf = (name: string, text: string): void => writeFileSync(join(home, name), text)

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'identities-'))
  mkdirSync(join(repository(), '.git'), { recursive: true })
  configOf('repo/.git/HEAD', 'ref: refs/heads/main\n')
  configOf('repo/.git/config', '[core]\n')
  nowMs = 1_000
  asked = 0
  find = rememberIdentities(async () => ({ name: `answer ${++asked}`, email: 'a@example.com' }), {
    env: { HOME: home },
    nowMs: () => nowMs,
  })
})
afterEach(() => rmSync(home, { recursive: true }))

it('a burst of requests asks git once', async () => {
  await find(repository())
  const answers = await Promise.all(Array.from({ length: 50 }, () => find(repository())))
  expect(new Set(answers.map((identity) => identity?.name))).toEqual(new Set(['answer 1']))
})

it.each<{ what: string; change: () => void }>([
  { what: 'the repository', change: () => configOf('repo/.git/config', '[user]\n\tname = Jane\n') },
  { what: 'the user', change: () => configOf('.gitconfig', '[user]\n\tname = Jane\n') },
  { what: 'some included file, a moment later', change: () => waited(2_000) },
])('a change in the configuration of $what counts', async ({ change }) => {
  await find(repository())
  change()
  expect(await find(repository())).toMatchObject({ name: 'answer 2' })
})

it('repositories do not share an identity', async () => {
  await find(repository())
  expect(await find(undefined)).toMatchObject({ name: 'answer 2' })
})

it('a failure is not remembered', async () => {
  let isBroken = true
  const broken = rememberIdentities(
    async () => {
      if (isBroken) throw new Error('no git here')
      return undefined
    },
    { env: { HOME: home }, nowMs: () => nowMs },
  )
  await expect(broken(repository())).rejects.toThrow('no git here')
  isBroken = false
  expect(await broken(repository())).toBeUndefined()
})
