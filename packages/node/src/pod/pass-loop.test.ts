import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { PassLoop } from './pass-loop.js'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

function loopOf(pass: (loop: PassLoop) => Promise<void>) {
  const life = new AbortController()
  const failed: unknown[] = []
  const loop: PassLoop = new PassLoop({
    signal: life.signal,
    pass: () => pass(loop),
    onFailed: async (error) => void failed.push(error),
  })
  return { life, failed, loop }
}

it('many calls during a pass bring one more pass', async () => {
  let passes = 0
  let finish = (): void => undefined
  const { loop } = loopOf(() => {
    passes += 1
    return passes === 1 ? new Promise((resolve) => (finish = resolve)) : Promise.resolve()
  })
  for (let call = 0; call < 5; call++) loop.wake()
  expect(loop.isDirty).toBe(true)
  finish()
  await vi.advanceTimersByTimeAsync(0)
  expect(passes).toBe(2)
  expect(loop.isDirty).toBe(false)
})

it('a pass that fails is tried again after 200 ms, 400 ms and so on, at most every 30 s', async () => {
  const at: number[] = []
  const startedAt = Date.now()
  const { loop, failed } = loopOf(() => {
    at.push(Date.now() - startedAt)
    return Promise.reject(new Error('no room'))
  })
  loop.wake()
  await vi.advanceTimersByTimeAsync(200_000)
  expect(at.slice(0, 4)).toEqual([0, 200, 600, 1_400])
  expect(at.at(-1)! - at.at(-2)!).toBe(30_000)
  expect(failed).toHaveLength(at.length)
  await loop.stop()
})

it('a retry ends the wait after a failure, and is nothing where all is well', async () => {
  let passes = 0
  const { loop } = loopOf(async () => {
    passes += 1
    if (passes === 1) throw new Error('no room')
  })
  loop.wake()
  await vi.advanceTimersByTimeAsync(0)
  loop.retry()
  await vi.advanceTimersByTimeAsync(0)
  expect(passes).toBe(2)
  loop.retry()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(passes).toBe(2)
})

it('no pass begins after the end, neither by a call nor by a wait', async () => {
  let passes = 0
  const { loop, life } = loopOf(async (self) => {
    passes += 1
    self.wakeIn(1_000)
  })
  loop.wake()
  await vi.advanceTimersByTimeAsync(0)
  life.abort()
  await loop.stop()
  loop.wake()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(passes).toBe(1)
})
