import type { Condition, SandboxClaim, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { annotations } from '../shared/names.js'
import { withStamps } from './claim-draft.js'
import { claimExpiry, expiryMove } from './expiry.js'
import { firstReady, firstReadyStamp } from './first-ready.js'

const now = new Date('2026-01-01T00:01:00Z')
const condition = (type: string, reason: string, status: Condition['status'] = 'True'): Condition => ({
  type,
  status,
  reason,
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
})
const finished = condition('Finished', 'PodSucceeded')
const marked = condition('Ready', 'ClaimExpired', 'False')
const claim = (lifecycle: object = {}, conditions: Condition[] = [], known?: Record<string, string>) =>
  ({
    metadata: { name: 'c', ...(known ? { annotations: known } : {}) },
    spec: { lifecycle },
    status: { conditions },
  }) as unknown as Stored<SandboxClaim>
const over = '2026-01-01T00:01:00Z'

describe('the time of a claim', () => {
  it.each<{ when: string; lifecycle: object; conditions?: Condition[]; is: object }>([
    { when: 'it has no end', lifecycle: {}, is: { expired: false } },
    { when: 'it ends now', lifecycle: { shutdownTime: over }, is: { expired: true } },
    {
      when: 'it ends in ten seconds',
      lifecycle: { shutdownTime: '2026-01-01T00:01:10Z' },
      is: { expired: false, leftMs: 10_000 },
    },
    {
      when: 'its Pod finished a minute ago and it lives for two',
      lifecycle: { ttlSecondsAfterFinished: 120 },
      conditions: [finished],
      is: { expired: false, leftMs: 60_000 },
    },
    {
      when: 'its Pod finished a minute ago and it lives for one',
      lifecycle: { ttlSecondsAfterFinished: 60 },
      conditions: [finished],
      is: { expired: true },
    },
    {
      when: 'its Pod has not finished',
      lifecycle: { ttlSecondsAfterFinished: 0 },
      conditions: [{ ...finished, status: 'False' }],
      is: { expired: false },
    },
    {
      when: 'both are set: the earlier counts',
      lifecycle: { shutdownTime: '2026-01-01T00:01:10Z', ttlSecondsAfterFinished: 65 },
      conditions: [finished],
      is: { expired: false, leftMs: 5_000 },
    },
  ])('when $when', ({ lifecycle, conditions = [], is }) => {
    expect(claimExpiry(claim(lifecycle), conditions, now)).toEqual(is)
  })

  it.each<{ when: string; claim: SandboxClaim; is: object }>([
    { when: 'its time is not up', claim: claim(), is: { move: 'serve' } },
    {
      when: 'its time is up: that is recorded before anything goes',
      claim: claim({ shutdownTime: over, shutdownPolicy: 'Delete' }),
      is: { move: 'mark' },
    },
    {
      when: 'it asked to go',
      claim: claim({ shutdownTime: over, shutdownPolicy: 'Delete' }, [marked]),
      is: { move: 'deleteClaim', policy: 'Delete' },
    },
    {
      when: 'it asked to go after what it owns',
      claim: claim({ shutdownTime: over, shutdownPolicy: 'DeleteForeground' }, [marked]),
      is: { move: 'deleteClaim', policy: 'DeleteForeground' },
    },
    {
      when: 'it is retained: only its sandbox goes',
      claim: claim({ shutdownTime: over, shutdownPolicy: 'Retain' }, [marked]),
      is: { move: 'deleteSandbox' },
    },
    { when: 'no policy is named', claim: claim({ shutdownTime: over }, [marked]), is: { move: 'deleteSandbox' } },
    {
      when: 'its end was moved after it was recorded',
      claim: claim({ shutdownTime: '2026-01-01T00:02:00Z', shutdownPolicy: 'Delete' }, [marked]),
      is: { move: 'serve' },
    },
  ])('when $when', ({ claim, is }) => {
    expect(expiryMove(claim, now)).toEqual(is)
  })
})

describe('stamps of a claim', () => {
  const stamped = (known: Record<string, string> | undefined, traceContext?: string) =>
    withStamps(claim({}, [], known), { observedAt: () => now, traceContext })

  it('say when it was first seen and which trace it belongs to', () => {
    const { claim: next, stamps } = stamped(undefined, '00-trace')
    expect(stamps).toEqual({
      [annotations.firstObservedAt]: now.toISOString(),
      [annotations.traceContext]: '00-trace',
    })
    expect(next.metadata.annotations).toEqual(stamps)
  })

  it('stay as they are where they were written, without a write', () => {
    const first = stamped({ other: 'x' }, '00-trace')
    const again = withStamps(first.claim, {
      observedAt: () => {
        throw new Error('asked for no reason')
      },
      traceContext: '00-other',
    })
    expect(again.stamps).toEqual({})
    expect(again.claim).toBe(first.claim)
    expect(again.claim.metadata.annotations).toMatchObject({ other: 'x' })
  })

  it('without tracing only the time is kept', () => {
    expect(Object.values(stamped({}).stamps)).toEqual([now.toISOString()])
  })

  const ready = { conditions: [condition('Ready', 'Ready')] }
  it.each([
    { when: 'it is Ready for the first time', before: {}, after: ready, stamps: {}, kind: 'count' },
    { when: 'it was Ready before it was stamped', before: ready, after: ready, stamps: {}, kind: 'backfill' },
    {
      when: 'it is Ready and stamped',
      before: {},
      after: ready,
      stamps: { [annotations.firstReadyAt]: 'unknown' },
      kind: 'none',
    },
    { when: 'it is not Ready', before: {}, after: {}, stamps: {}, kind: 'none' },
  ])('a first Ready is counted once: $kind when $when', ({ before, after, stamps, kind }) => {
    expect(firstReady(claim({}, [], stamps), before, after)).toEqual({ kind })
  })

  it('the stamp of a Ready that was not seen has no time', () => {
    expect(firstReadyStamp('count', now)).toBe(now.toISOString())
    expect(firstReadyStamp('backfill', now)).toBe('unknown')
  })
})
