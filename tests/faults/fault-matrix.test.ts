import { isFullSize } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  expectedEnd,
  type Fault,
  type FaultBench,
  faults,
  openFaultBench,
  problemsOf,
  type Stage,
  stages,
} from './fault-bench.js'

// Real processes on a machine that may be busy with other tests.
vi.setConfig({ testTimeout: 1_800_000, hookTimeout: 600_000 })

let bench: FaultBench
beforeAll(async () => {
  bench = await openFaultBench()
})
afterAll(async () => {
  await bench?.[Symbol.asyncDispose]()
  // A figure, not an assertion: the machine may be busy with other tests.
  const slowest = freshTasks.toSorted((one, other) => one.ms - other.ms).at(-1)
  if (slowest)
    console.log(`fresh tasks after a fault: ${freshTasks.length}, the slowest took ${slowest.ms} ms (${slowest.after})`)
})

/** How long the tasks took that came after a fault. */
const freshTasks: { after: string; ms: number }[] = []

/** Each fault once at the stage where most is at stake, and the rest of the ways into them. */
const few: [Fault, Stage][] = [
  ['SIGTERM', 'agent running'],
  ['main and cradle', 'queued'],
  ['cradle', 'agent running'],
  ['daemon', 'set-up'],
  ['bwrap', 'agent running'],
  ['remote away', 'pushing'],
]
const all = faults.flatMap((fault) => stages.map((stage): [Fault, Stage] => [fault, stage]))
/** In the small size the task of the next row is the fresh one that must succeed. */
const cells = isFullSize ? all : few

describe('whatever dies, nothing that was on disk is lost and nothing runs twice', () => {
  it.each(cells)('%s dies under a task that is %s', async (fault, stage) => {
    let promised = expectedEnd(fault, stage)
    const id = await bench.taskAt(stage, fault)
    await bench.strike(fault, id)
    await bench.release()
    if (promised === 'a refusal to clone') promised = await bench.untilRefused(id)
    bench.server.setAway(false)
    expect(await problemsOf(bench, await bench.platform.api.untilEnded(id), [promised])).toEqual([])

    if (isFullSize || cells.at(-1)?.join() === [fault, stage].join()) {
      const beganAt = performance.now()
      const fresh = await bench.platform.api.untilEnded(await bench.create())
      const ms = Math.round(performance.now() - beganAt)
      freshTasks.push({ after: `${fault}, ${stage}`, ms })
      expect(await problemsOf(bench, fresh, ['all of the work'])).toEqual([])
    }
    await bench.untilHealthy()
  })
})
