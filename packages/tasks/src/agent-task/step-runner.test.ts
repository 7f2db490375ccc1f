import { silentLogger } from '@corral/ports'
import { expect, it } from 'vitest'
import type { StepOutcome } from '../steps/step.js'
import { createStepRunner } from './step-runner.js'

const done: StepOutcome = { condition: 'AgentFinished', reason: 'Completed', message: '' }
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

it('a step that is slow to stop holds no other task up and counts as running until it has let go', async () => {
  const woken: string[] = []
  const runner = createStepRunner({ wake: (uid) => woken.push(uid), log: silentLogger })
  let letGo: (outcome: StepOutcome) => void = () => undefined
  runner.start('slow', 'follow-agent', () => new Promise((resolve) => (letGo = resolve)))
  runner.abort('slow')
  runner.start('other', 'push', async () => done)
  await tick()
  expect(woken).toEqual(['other'])
  expect(runner.current('slow')).toMatchObject({ running: true, aborting: true })
  letGo(done)
  await tick()
  expect(woken).toEqual(['other', 'slow', 'slow'].slice(0, woken.length))
  expect(runner.current('slow')).toBeUndefined()
  expect(runner.takeEnded('slow')).toBeUndefined()
})

it('counts failures since the last progress', async () => {
  const runner = createStepRunner({ wake: () => undefined, log: silentLogger })
  const fail = async (hasProgress: boolean): Promise<number> => {
    runner.start('a', 'follow-agent', async (_signal, progress) => {
      if (hasProgress) progress()
      throw new Error('lost')
    })
    await tick()
    const ended = runner.takeEnded('a')
    return ended && 'failures' in ended ? ended.failures : 0
  }
  expect([await fail(false), await fail(false), await fail(true), await fail(false)]).toEqual([1, 2, 1, 2])
})

it('how a step ended is told once, and the step is remembered until another one begins', async () => {
  const runner = createStepRunner({ wake: () => undefined, log: silentLogger })
  runner.start('a', 'push', async () => done)
  expect(runner.current('a')).toEqual({ name: 'push', running: true, aborting: false, failures: 0 })
  expect(runner.takeEnded('a')).toBeUndefined()
  await tick()
  expect(runner.current('a')).toEqual({ name: 'push', running: false, aborting: false, failures: 0 })
  expect(runner.takeEnded('a')).toEqual({ name: 'push', outcome: done })
  expect(runner.takeEnded('a')).toBeUndefined()
  runner.forget('a')
  expect(runner.current('a')).toBeUndefined()
})

it('no second step of a task runs beside the first', () => {
  const runner = createStepRunner({ wake: () => undefined, log: silentLogger })
  runner.start('a', 'setup', () => new Promise(() => undefined))
  expect(() => runner.start('a', 'push', async () => done)).toThrow('step setup of task a is still running')
})

it('failures of one step do not count against another, and a success clears them', async () => {
  const runner = createStepRunner({ wake: () => undefined, log: silentLogger })
  const failing = () => Promise.reject(new Error('no'))
  for (const [step, work, failures] of [
    ['setup', failing, 1],
    ['setup', failing, 2],
    ['collect', failing, 1],
    ['collect', async () => done, 0],
    ['collect', failing, 1],
  ] as const) {
    runner.start('a', step, work)
    await tick()
    expect(runner.current('a')).toMatchObject({ name: step, failures })
  }
})

it('what a running step reports is there until it is told to stop', async () => {
  const woken: string[] = []
  const runner = createStepRunner({ wake: (uid) => woken.push(uid), log: silentLogger })
  const report = { open: [], read: ['m1'] }
  runner.report('a', report)
  expect(woken).toEqual([])
  runner.start('a', 'follow-agent', () => new Promise(() => undefined))
  expect(runner.current('a')).not.toHaveProperty('report')
  runner.report('a', report)
  expect(woken).toEqual(['a'])
  expect(runner.current('a')).toMatchObject({ report })
  runner.abort('a')
  runner.report('a', { open: [], read: [] })
  expect(runner.current('a')).toMatchObject({ report })
  expect(woken).toEqual(['a'])
})

it('closing tells every step to stop and waits until they have let go', async () => {
  const runner = createStepRunner({ wake: () => undefined, log: silentLogger })
  const letGo: string[] = []
  for (const uid of ['a', 'b'])
    runner.start(
      uid,
      'setup',
      (signal) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            letGo.push(`${uid}: ${(signal.reason as Error).message}`)
            reject(new Error('stopped'))
          }),
        ),
    )
  await runner.close()
  expect(letGo).toEqual(['a: the step is no longer wanted', 'b: the step is no longer wanted'])
})

it.each([
  { how: 'well', work: async () => done },
  { how: 'badly', work: () => Promise.reject(new Error('no')) },
])('a step that ends $how wakes its task once, and a task that was forgotten not at all', async ({ work }) => {
  const woken: string[] = []
  const runner = createStepRunner({ wake: (uid) => woken.push(uid), log: silentLogger })
  runner.start('a', 'push', work)
  runner.start('b', 'push', work)
  runner.forget('b')
  await tick()
  expect(woken).toEqual(['a'])
})

it('a step that fails after it was told to stop is not told as a failure', async () => {
  const runner = createStepRunner({ wake: () => undefined, log: silentLogger })
  let fail: (error: Error) => void = () => undefined
  runner.start('a', 'setup', () => new Promise((_, reject) => (fail = reject)))
  runner.abort('a')
  runner.abort('a')
  expect(runner.takeEnded('a')).toBeUndefined()
  fail(new Error('stopped'))
  await tick()
  expect(runner.takeEnded('a')).toBeUndefined()
  expect(runner.current('a')).toBeUndefined()
})

it('closing waits for a step that lets go a little later', async () => {
  const runner = createStepRunner({ wake: () => undefined, log: silentLogger })
  let hasLetGo = false
  runner.start(
    'a',
    'setup',
    (signal) =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () =>
          setTimeout(() => {
            hasLetGo = true
            reject(new Error('stopped'))
          }, 20),
        ),
      ),
  )
  await runner.close()
  expect(hasLetGo).toBe(true)
})
