import { afterEach, describe, expect, it } from 'vitest'
import type { OomReport } from '../../isolation/isolation.js'
import { OomWatch } from './oom-watch.js'

describe('what the kernel ended in pods', () => {
  const counts = new Map<string, number>()
  const told: OomReport[] = []
  const lastAt = '2026-01-01T00:00:00.000Z'
  const watch = new OomWatch({
    cells: () => [...counts].map(([key, kills]) => ({ key, podUid: key.slice(0, 1), oomKills: () => kills })),
    onReport: (report) => told.push(report),
    now: () => new Date(lastAt),
    everyMs: 3_600_000,
  })
  afterEach(() => watch.close())

  it('is told once per change, summed over the containers of a pod and their restarts', () => {
    counts.set('a/main/0', 0).set('a/side/0', 0).set('b/main/0', 0)
    watch.look()
    expect(told).toEqual([])
    counts.set('a/main/0', 2)
    watch.look()
    watch.look()
    expect(told).toEqual([{ podUid: 'a', kills: 2, lastAt }])
    counts.delete('a/main/0')
    counts.set('a/main/1', 1).set('a/side/0', 1)
    watch.look()
    expect(watch.reports).toEqual([{ podUid: 'a', kills: 4, lastAt }])
    watch.forget('a', ['a/main/0', 'a/main/1', 'a/side/0'])
    expect(watch.reports).toEqual([])
  })
})
