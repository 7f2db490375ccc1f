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
