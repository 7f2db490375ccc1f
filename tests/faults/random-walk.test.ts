import { isFullSize } from '@corral/testing'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import {
  type End,
  expectedEnd,
  type Fault,
  type FaultBench,
  faults,
  openFaultBench,
  problemsOf,
  stages,
} from './fault-bench.js'

// Real processes on a machine that may be busy with other tests.
vi.setConfig({ testTimeout: 3_600_000, hookTimeout: 600_000 })

const size = isFullSize ? { rounds: 200, tasks: 10 } : { rounds: 1, tasks: 3 }
/** A part of the walk: `CORRAL_TEST_ROUNDS=51-100` with the seed of the run that had the others. */
const [firstRound = 1, lastRound = size.rounds] = (process.env.CORRAL_TEST_ROUNDS ?? '')
  .split('-')
  .filter(Boolean)
  .map(Number)
/** Told by a failure, so that the same walk can be taken again. */
const seed = Number(process.env.CORRAL_TEST_SEED ?? Date.now() % 1_000_000)

/** Numbers below `limit`, the same ones for the same seed (mulberry32). */
function randomNumbers(start: number): (limit: number) => number {
  let state = start
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
}

/** The fault finds the other tasks of a round at any stage: what their users may get. */
function possibleEnds(fault: Fault): End[] {
  return fault === 'remote away' ? ['all of the work', 'a refusal to clone'] : ['all of the work', 'what was on disk']
}

let bench: FaultBench
beforeAll(async () => {
  bench = await openFaultBench()
})
afterAll(() => bench?.[Symbol.asyncDispose]())

const random = randomNumbers(seed)
const walk = Array.from({ length: size.rounds }, (_, index) => ({
  round: index + 1,
  fault: faults[random(faults.length)]!,
  stage: stages[random(stages.length)]!,
})).filter(({ round }) => round >= firstRound && round <= lastRound)

it.each(walk)(`seed ${seed}, round $round: $fault dies under ${size.tasks} tasks, one of them $stage`, async (step) => {
  const { fault, stage } = step
  const first = await bench.taskAt(stage)
  const others = await Promise.all(Array.from({ length: size.tasks - 1 }, () => bench.create()))
  await bench.strike(fault, first)
  await bench.release()
  try {
    if (expectedEnd(fault, stage) === 'a refusal to clone') await bench.untilRefused(first)
  } finally {
    // Or a round that failed would take all later ones with it.
    bench.server.setAway(false)
  }
  for (const id of [first, ...others])
    expect(
      await problemsOf(bench, await bench.platform.api.untilEnded(id, { intervalMs: 250 }), possibleEnds(fault)),
    ).toEqual([])
  await bench.untilHealthy()
})
