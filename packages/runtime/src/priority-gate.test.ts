import { describe, expect, it } from 'vitest'
import { startController } from './controller.js'
import { PriorityGate } from './priority-gate.js'
import type { Timer } from './timer.js'
import { WorkQueue } from './work-queue.js'

/** A timer whose hands the test moves. */
function steppedTimer(): Timer & { step(ms: number): void } {
  let nowMs = 0
  const alarms = new Set<{ atMs: number; run: () => void }>()
  return {
    now: () => new Date(nowMs),
    after(delayMs, run) {
      const alarm = { atMs: nowMs + delayMs, run }
      alarms.add(alarm)
      return () => alarms.delete(alarm)
    },
    step(ms) {
      nowMs += ms
      for (const alarm of [...alarms]) {
        if (alarm.atMs > nowMs || !alarms.delete(alarm)) continue
        alarm.run()
      }
    },
  }
}

/** Work that lasts until the test ends it. */
function held(): { run: () => Promise<void>; end: () => void; hasStarted: () => boolean } {
  let end = (): void => {}
  let started = false
  const done = new Promise<void>((resolve) => {
    end = resolve
  })
  const run = (): Promise<void> => {
    started = true
    return done
  }
  return { run, end: () => end(), hasStarted: () => started }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('priorities', () => {
  it('lets low-priority calls through at once where no high-priority call runs', async () => {
    expect(await new PriorityGate().low(async () => 'done')).toBe('done')
  })

  it('holds low-priority calls back until the last high-priority one has ended, then lets them go in order', async () => {
    const priorities = new PriorityGate({ timer: steppedTimer(), lowConcurrency: 1 })
    const first = held()
    const second = held()
    const high = [priorities.high(first.run), priorities.high(second.run)]
    const order: string[] = []
    const low = ['a', 'b', 'c'].map((name) => priorities.low(async () => void order.push(name)))
    first.end()
    await settled()
    expect(order).toEqual([])
    second.end()
    await Promise.all([...high, ...low])
    expect(order).toEqual(['a', 'b', 'c'])
  })

  it('never runs more low-priority calls at once than it is told to', async () => {
    const priorities = new PriorityGate({ lowConcurrency: 2 })
    const works = [held(), held(), held()]
    const calls = works.map(({ run }) => priorities.low(run))
    await settled()
    expect(works.map(({ hasStarted }) => hasStarted())).toEqual([true, true, false])
    works[0]?.end()
    await settled()
    expect(works[2]?.hasStarted()).toBe(true)
    for (const { end } of works) end()
    await Promise.all(calls)
  })

  it('lets only a few go shortly after high-priority work, more once it has been quiet', async () => {
    const timer = steppedTimer()
    const priorities = new PriorityGate({ timer, lowConcurrency: 3, lowConcurrencyAfterHigh: 1 })
    await priorities.high(async () => {})
    const works = [held(), held(), held(), held()]
    const calls = works.map(({ run }) => priorities.low(run))
    await settled()
    expect(works.filter(({ hasStarted }) => hasStarted())).toHaveLength(1)
    timer.step(1_000)
    works[0]?.end()
    await settled()
    expect(works.filter(({ hasStarted }) => hasStarted())).toHaveLength(4)
    for (const { end } of works) end()
    await Promise.all(calls)
  })

  it('lets those that waited long enough go beside high-priority work, fewer at once', async () => {
    const timer = steppedTimer()
    const priorities = new PriorityGate({ timer, lowConcurrency: 4, lowConcurrencyBesideHigh: 1, maxLowWaitMs: 100 })
    const high = held()
    const serving = priorities.high(high.run)
    const works = [held(), held()]
    const calls = works.map(({ run }) => priorities.low(run))
    timer.step(99)
    await settled()
    expect(works.some(({ hasStarted }) => hasStarted())).toBe(false)
    timer.step(1)
    await settled()
    expect(works.map(({ hasStarted }) => hasStarted())).toEqual([true, false])
    for (const { end } of [high, ...works]) end()
    await Promise.all([serving, ...calls])
  })

  it('gives up all waiting calls of a signal that aborts, wherever they stand, and goes on with the others', async () => {
    const priorities = new PriorityGate({ timer: steppedTimer() })
    const high = held()
    const serving = priorities.high(high.run)
    const stop = new AbortController()
    const first = priorities.low(async () => 'never', stop.signal)
    const next = priorities.low(async () => 'next', new AbortController().signal)
    const last = priorities.low(async () => 'never', stop.signal)
    stop.abort(new Error('stopping'))
    await expect(first).rejects.toThrow('stopping')
    await expect(last).rejects.toThrow('stopping')
    await expect(priorities.low(async () => 'never', stop.signal)).rejects.toThrow('stopping')
    high.end()
    expect(await next).toBe('next')
    await serving
  })

  it('begins no more in a turn once those before have taken long, so that others are heard before the next', async () => {
    const timer = steppedTimer()
    const priorities = new PriorityGate({ timer })
    const order: string[] = []
    const slow = (name: string) => async (): Promise<void> => {
      order.push(name)
      timer.step(3)
    }
    const calls = ['a', 'b', 'c', 'd'].map((name) => priorities.low(slow(name)))
    setImmediate(() => order.push('somebody else'))
    await Promise.all(calls)
    expect(order).toEqual(['a', 'b', 'somebody else', 'c', 'd'])
  })

  it('lets everybody go once it is opened, and failed calls make room like others', async () => {
    const priorities = new PriorityGate({ timer: steppedTimer(), lowConcurrency: 1 })
    const high = held()
    const serving = priorities.high(high.run)
    const failing = priorities.low(() => Promise.reject(new Error('boom')))
    const next = priorities.low(async () => 'next')
    priorities.open()
    await expect(failing).rejects.toThrow('boom')
    expect(await next).toBe('next')
    high.end()
    await serving
  })
})

describe('a low-priority reconcile', () => {
  function start(isLowPriority: (key: string) => boolean, reconcile?: () => Promise<void>) {
    const stop = new AbortController()
    const queue = new WorkQueue({ name: 'q' })
    const priorities = new PriorityGate({ timer: steppedTimer() })
    const passes: string[] = []
    const controller = startController({
      ...{ name: 'q', workers: 1, queue, priorities, signal: stop.signal, isLowPriority },
      async reconcile({ key }) {
        passes.push(key)
        await reconcile?.()
        return {}
      },
    })
    const end = (): Promise<void> => {
      stop.abort()
      return controller.stopped
    }
    return { queue, priorities, passes, end }
  }

  it('waits for high-priority work without keeping a worker', async () => {
    const { queue, priorities, passes, end } = start((key) => key.startsWith('ns/chore'))
    const high = held()
    const serving = priorities.high(high.run)
    for (const key of ['ns/chore-1', 'ns/chore-2', 'ns/awaited']) queue.add(key)
    await expect.poll(() => passes).toEqual(['ns/awaited'])
    high.end()
    await serving
    await expect.poll(() => passes).toEqual(['ns/awaited', 'ns/chore-1', 'ns/chore-2'])
    await end()
  })

  it('counts as one of the passes that may run at once', async () => {
    let running = 0
    let most = 0
    const { queue, passes, end } = start(
      (key) => key.startsWith('ns/chore'),
      async () => {
        most = Math.max(most, ++running)
        await settled()
        running -= 1
      },
    )
    for (const key of ['ns/chore-1', 'ns/awaited-1', 'ns/chore-2', 'ns/chore-3', 'ns/awaited-2']) queue.add(key)
    await expect.poll(() => passes.length).toBe(5)
    await end()
    expect(most).toBe(1)
  })

  it('that still waits when the loop stops is given up, and the stop does not wait for it', async () => {
    const { queue, priorities, passes, end } = start(() => true)
    const high = held()
    const serving = priorities.high(high.run)
    queue.add('ns/chore')
    await settled()
    await end()
    expect(passes).toEqual([])
    high.end()
    await serving
  })
})

describe('the rest of a pass', () => {
  it('keeps no worker but its key, and its failure brings the key back', async () => {
    const stop = new AbortController()
    const queue = new WorkQueue({ name: 'q' })
    const rest = held()
    const passes: string[] = []
    let failures = 1
    const controller = startController({
      name: 'q',
      workers: 1,
      queue,
      signal: stop.signal,
      async reconcile({ key }) {
        passes.push(key)
        if (key !== 'ns/slow') return {}
        if (failures-- <= 0) return {}
        return {
          deferredWrite: async () => {
            await rest.run()
            throw new Error('the rest failed')
          },
        }
      },
    })
    queue.add('ns/slow')
    queue.add('ns/other')
    queue.add('ns/slow')
    await expect.poll(() => passes).toEqual(['ns/slow', 'ns/other'])
    queue.add('ns/slow')
    await settled()
    expect(passes).toEqual(['ns/slow', 'ns/other'])
    rest.end()
    await expect.poll(() => passes.filter((key) => key === 'ns/slow').length).toBeGreaterThanOrEqual(2)
    expect(queue.failures('ns/slow')).toBeLessThanOrEqual(1)
    stop.abort()
    await controller.stopped
  })
})
