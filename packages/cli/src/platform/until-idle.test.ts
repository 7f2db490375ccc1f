import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { isWanted, untilIdle } from './until-idle.js'

const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

it('waits while something is busy and resolves once nothing was for long enough', async () => {
  let looks = 0
  await untilIdle(() => ++looks < 3, { idleMs: 10, signal: new AbortController().signal })
  expect(looks).toBeGreaterThanOrEqual(3)
})

it('keeps nothing running after an abort: a stopped platform ends at once, however long it could have idled', async () => {
  const before = timers()
  const stopping = new AbortController()
  const idle = untilIdle(() => false, { idleMs: 600_000, signal: stopping.signal })
  expect(timers()).toBe(before + 1)
  stopping.abort()
  await idle
  expect(timers()).toBe(before)
})

it('a platform that was told to stay is wanted without a task', () => {
  const stay = join(tmpdir(), `corral-stay-${process.pid}`)
  const idle = { isBusy: () => false }
  expect(isWanted(idle, { stay })).toBe(false)
  expect(isWanted({ isBusy: () => true }, { stay })).toBe(true)
  writeFileSync(stay, '')
  expect(isWanted(idle, { stay })).toBe(true)
  rmSync(stay)
})
