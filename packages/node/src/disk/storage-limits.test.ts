import type { Pod } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { isMeasurementDue } from './measurement-due.js'
import type { PodUsage } from './pod-usage.js'
import { exceededLimit, headroom, storageLimits } from './storage-limits.js'

const MiB = 2 ** 20
const usage = (total: number, parts: Record<string, number> = {}, inodes = 1): PodUsage => ({
  total: { bytes: total * MiB, inodes },
  parts: Object.fromEntries(Object.entries(parts).map(([name, size]) => [name, { bytes: size * MiB, inodes: 1 }])),
  tookMs: 0,
})
const container = (name: string, limit?: string) => ({
  name,
  ...(limit ? { resources: { limits: { 'ephemeral-storage': limit } } } : {}),
})
const plain: Pod = { spec: { containers: [container('c')] } }
const sized: Pod = {
  spec: { containers: [container('c')], volumes: [{ name: 'v', emptyDir: { sizeLimit: '5Mi' } }] },
}
const two: Pod = { spec: { containers: [container('a', '1Mi'), container('b', '3Mi')] } }

describe('the limits of a pod', () => {
  it.each<{ when: string; pod: Pod; has: PodUsage; exceeds: string | undefined }>([
    { when: 'it names none and takes 10Gi', pod: plain, has: usage(10 * 1024), exceeds: undefined },
    {
      when: 'it names none and takes more than 10Gi',
      pod: plain,
      has: usage(10 * 1024 + 1),
      exceeds: 'Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.',
    },
    {
      when: 'its containers together take more than the sum of theirs',
      pod: two,
      has: usage(5),
      exceeds: 'Pod ephemeral local storage usage exceeds the total limit of containers 4Mi.',
    },
    {
      when: 'one container of two writes too much log',
      pod: two,
      has: usage(2, { 'logs/a': 2 }),
      exceeds: 'Container a exceeded its local ephemeral storage limit "1Mi".',
    },
    {
      when: 'a volume is full',
      pod: sized,
      has: usage(6, { 'volumes/v': 6 }),
      exceeds: 'Usage of EmptyDir volume "v" exceeds the limit "5Mi".',
    },
    {
      when: 'it has more files than a pod may have that says nothing',
      pod: plain,
      has: usage(0, {}, 1_048_577),
      exceeds: 'Pod inode usage exceeds the limit 1048576.',
    },
    {
      when: 'it has too many files',
      pod: { ...plain, metadata: { annotations: { 'corral.dev/inodes': '100' } } },
      has: usage(0, {}, 101),
      exceeds: 'Pod inode usage exceeds the limit 100.',
    },
  ])('when $when', ({ pod, has, exceeds }) => {
    expect(exceededLimit(storageLimits(pod), has)).toBe(exceeds)
  })

  it('an annotation that is no number of seconds or inodes changes nothing', () => {
    const annotations = { 'corral.dev/inodes': 'many', 'corral.dev/eviction-grace-seconds': '-1' }
    expect(storageLimits({ ...plain, metadata: { annotations } })).toEqual(storageLimits(plain))
  })

  it('the nearest one says how much is left', () => {
    expect(headroom(storageLimits(sized), usage(3, { 'volumes/v': 3 })).bytes).toBe(2 * MiB)
  })
})

describe('a pod is counted again', () => {
  const last = { sinceMs: 1000, tookMs: 10, headroom: { bytes: 100, inodes: 100 }, grown: { bytes: 0, inodes: 0 } }
  it.each([
    { when: 'soon after, with nothing written', last, due: false },
    { when: 'after a while', last: { ...last, sinceMs: 15_000 }, due: true },
    { when: 'after a while, where counting takes long', last: { ...last, sinceMs: 15_000, tookMs: 1000 }, due: false },
    {
      when: 'when half of what it may take was written',
      last: { ...last, grown: { bytes: 50, inodes: 0 } },
      due: true,
    },
    { when: 'when as many files were made', last: { ...last, grown: { bytes: 0, inodes: 50 } }, due: true },
    {
      when: 'the same just after it was counted',
      last: { ...last, sinceMs: 50, grown: { bytes: 50, inodes: 0 } },
      due: false,
    },
  ])('$when: $due', ({ last: measurement, due }) => {
    expect(isMeasurementDue(measurement)).toBe(due)
  })
})
