import { describe, expect, it } from 'vitest'
import { backoffMs } from './backoff.js'
import { steppedTimer } from './stepped-timer.test-suite.js'
import { WorkQueue } from './work-queue.js'

function queueAt(): { queue: WorkQueue; timer: ReturnType<typeof steppedTimer> } {
  const timer = steppedTimer()
  return { queue: new WorkQueue({ name: 'test', timer }), timer }
}

/** Everything that is ready, in the order in which it is handed out. */
async function drain(queue: WorkQueue): Promise<string[]> {
  const keys: string[] = []
  while (queue.length > 0) keys.push((await queue.next()) ?? '')
  return keys
}

describe('work queue', () => {
  it('hands out a key once however often it was added', async () => {
    const { queue } = queueAt()
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key)
    expect(await drain(queue)).toEqual(['a', 'b'])
  })

  it('holds back a key that is being worked on, and runs it once more afterwards', async () => {
    const { queue } = queueAt()
    queue.add('a')
    expect(await queue.next()).toBe('a')
    queue.add('a')
    queue.add('a')
    expect(queue.length).toBe(0)
    queue.done('a')
    expect(await drain(queue)).toEqual(['a'])
    queue.done('a')
    expect(queue.length).toBe(0)
  })

  it('wakes a waiting worker', async () => {
    const { queue } = queueAt()
    const waiting = queue.next()
    queue.add('a')
    expect(await waiting).toBe('a')
  })

  it('serves what already existed after everything else', async () => {
    const { queue } = queueAt()
    queue.add('old', { priority: 'low' })
    queue.add('raised', { priority: 'low' })
    queue.add('new')
    queue.add('raised')
    expect(await drain(queue)).toEqual(['new', 'raised', 'old'])
  })

  it('delivers a delayed key when its time has come and not before', async () => {
    const { queue, timer } = queueAt()
    queue.addAfter('a', 100)
    timer.advance(99)
    expect(queue.length).toBe(0)
    timer.advance(1)
    expect(await drain(queue)).toEqual(['a'])
  })

  it.each([
    { first: 50, second: 100, at: 50 },
    { first: 100, second: 50, at: 50 },
  ])('takes the earlier of two delays ($first and $second ms)', ({ first, second, at }) => {
    const { queue, timer } = queueAt()
    queue.addAfter('a', first)
    queue.addAfter('a', second)
    timer.advance(at)
    expect(queue.length).toBe(1)
    expect(queue.delayedCount).toBe(0)
  })

  it('forgets the delay once the key is added for now', async () => {
    const { queue, timer } = queueAt()
    queue.addAfter('a', 100)
    queue.add('a')
    expect(await drain(queue)).toEqual(['a'])
    queue.done('a')
    timer.advance(200)
    expect(queue.length).toBe(0)
  })

  it('doubles the pause with every failure until the key is forgotten', () => {
    const { queue } = queueAt()
    expect([1, 2, 3, 4].map(() => queue.addRateLimited('a'))).toEqual([5, 10, 20, 40])
    expect(queue.failures('a')).toBe(4)
    queue.forget('a')
    expect(queue.addRateLimited('a')).toBe(5)
  })

  it.each([
    { failures: 0, pauseMs: 5 },
    { failures: 10, pauseMs: 5_120 },
    { failures: 18, pauseMs: 1_000_000 },
    { failures: 5_000, pauseMs: 1_000_000 },
  ])('pauses $pauseMs ms after $failures failures', ({ failures, pauseMs }) => {
    expect(backoffMs(failures)).toBe(pauseMs)
  })

  it('lets everybody go when it closes', async () => {
    const { queue, timer } = queueAt()
    const waiting = queue.next()
    queue.addAfter('late', 10)
    queue.close()
    expect(await waiting).toBeUndefined()
    queue.add('a')
    timer.advance(100)
    expect(queue.length).toBe(0)
    expect(await queue.next()).toBeUndefined()
  })

  it('tells its depth by priority and how long keys have been worked on', async () => {
    const timer = steppedTimer()
    const depth: Record<string, number> = {}
    const none = (): void => {}
    const queue = new WorkQueue({
      name: 'test',
      timer,
      metrics: {
        ...{ reconciled: none, queued: none, waited: none, retried: none, gaveUp: none, activeWorkers: none },
        queueDepth(_, ready, priority) {
          depth[priority] = ready
        },
      },
    })
    queue.add('a', { priority: 'low' })
    queue.add('b', { priority: 'low' })
    expect(depth).toEqual({ low: 2 })
    queue.add('b')
    expect(depth).toEqual({ low: 1, normal: 1 })
    await queue.next()
    timer.advance(2_000)
    await queue.next()
    timer.advance(1_000)
    expect(depth).toEqual({ low: 0, normal: 0 })
    expect(queue.unfinishedSeconds()).toEqual([3, 1])
    queue.done('b')
    expect(queue.unfinishedSeconds()).toEqual([1])
  })
})
