import type { Logger } from '@corral/ports'
import { KubeError } from '@corral/resources'
import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { startController } from './controller.js'
import { promControllerMetrics } from './controller-metrics.js'
import type { Reconcile } from './reconcile.js'
import { steppedTimer } from './stepped-timer.test-suite.js'
import { TerminalError } from './terminal-error.js'
import { WorkQueue } from './work-queue.js'

function run(reconcile: Reconcile, workers = 1) {
  const timer = steppedTimer()
  const metrics = promControllerMetrics(new Registry())
  const queue = new WorkQueue({ name: 'test', timer, metrics })
  const stop = new AbortController()
  const said: string[] = []
  const log: Logger = {
    debug() {},
    info: (message) => void said.push(`info: ${message}`),
    warn: (message) => void said.push(`warn: ${message}`),
    error: (message) => void said.push(`error: ${message}`),
    child: () => log,
  }
  const { signal } = stop
  const controller = startController({ name: 'test', workers, reconcile, queue, timer, metrics, log, signal })
  return {
    said,
    queue,
    timer,
    async stop() {
      stop.abort()
      await controller.stopped
    },
  }
}

/** Settles once everything that can run without the clock has run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('controller loop', () => {
  it('splits the key and passes it on', async () => {
    const seen: string[] = []
    const loop = run(async ({ namespace, name }) => {
      seen.push(`${namespace}|${name}`)
      return {}
    })
    loop.queue.add('ns/a')
    loop.queue.add('cluster-scoped')
    await settled()
    expect(seen).toEqual(['ns|a', '|cluster-scoped'])
    await loop.stop()
  })

  it('says nothing of a conflict with another writer, but that it does not end', async () => {
    const loop = run(async () => {
      throw new KubeError('Conflict', 'the object has been modified')
    })
    loop.queue.add('a')
    await settled()
    for (let pauseMs = 5; pauseMs < 1_000; pauseMs *= 2) {
      expect(loop.said).toEqual([])
      loop.timer.advance(pauseMs)
      await settled()
    }
    expect(loop.said).toEqual(['warn: reconcile failed'])
    await loop.stop()
  })

  it('tries a failed key again, later each time, and forgives after a success', async () => {
    let passes = 0
    const loop = run(async () => {
      passes += 1
      if (passes < 3) throw new Error('not yet')
      return {}
    })
    loop.queue.add('a')
    await settled()
    loop.timer.advance(5)
    await settled()
    loop.timer.advance(9)
    await settled()
    expect(passes).toBe(2)
    loop.timer.advance(1)
    await settled()
    expect(passes).toBe(3)
    expect(loop.queue.failures('a')).toBe(0)
    await loop.stop()
  })

  it('rests after a terminal error, also when it is wrapped', async () => {
    let passes = 0
    const loop = run(async () => {
      passes += 1
      throw new Error('wrapped', { cause: new TerminalError('never') })
    })
    loop.queue.add('a')
    await settled()
    loop.timer.advance(10_000_000)
    await settled()
    expect(passes).toBe(1)
    await loop.stop()
  })

  it('waits at least as long as a busy server asks', async () => {
    let passes = 0
    const loop = run(async () => {
      passes += 1
      throw new KubeError('TooManyRequests', 'slow down', { retryAfterMs: 1_000 })
    })
    loop.queue.add('a')
    await settled()
    loop.timer.advance(999)
    await settled()
    expect(passes).toBe(1)
    loop.timer.advance(1)
    await settled()
    expect(passes).toBe(2)
    await loop.stop()
  })

  it('looks again when asked to', async () => {
    let passes = 0
    const loop = run(async () => {
      passes += 1
      return passes === 1 ? { requeueAfterMs: 1_000 } : {}
    })
    loop.queue.add('a')
    await settled()
    loop.timer.advance(1_000)
    await settled()
    expect(passes).toBe(2)
    await loop.stop()
  })

  it('never runs one key twice at once, and different keys side by side', async () => {
    const running = new Set<string>()
    const overlaps: string[] = []
    let most = 0
    const release: (() => void)[] = []
    const loop = run(async ({ key }) => {
      if (running.has(key)) overlaps.push(key)
      running.add(key)
      most = Math.max(most, running.size)
      await new Promise<void>((resolve) => release.push(resolve))
      running.delete(key)
      return {}
    }, 3)
    for (const key of ['a', 'b', 'c', 'a', 'a']) loop.queue.add(key)
    await settled()
    loop.queue.add('a')
    for (let left = 10; left > 0; left -= 1) {
      release.shift()?.()
      await settled()
    }
    expect({ overlaps, most }).toEqual({ overlaps: [], most: 3 })
    await loop.stop()
  })

  it('settles its stop only after the running pass has ended', async () => {
    const events: string[] = []
    let finish = (): void => {}
    const loop = run(async ({ signal }) => {
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      events.push(signal.aborted ? 'pass ended, saw the stop' : 'pass ended')
      return {}
    })
    loop.queue.add('a')
    await settled()
    const stopped = loop.stop().then(() => events.push('stopped'))
    await settled()
    expect(events).toEqual([])
    finish()
    await stopped
    expect(events).toEqual(['pass ended, saw the stop', 'stopped'])
  })
})
