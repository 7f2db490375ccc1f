import type { KubeObject, Sandbox, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { expiredStatus, markExpired, planExpiry, sandboxExpiry } from './expiry.js'

const now = new Date('2026-01-01T00:00:00Z')
const sandbox = (spec: object = {}, isMarked = true): Stored<Sandbox> =>
  ({
    apiVersion: 'agents.x-k8s.io/v1beta1',
    kind: 'Sandbox',
    metadata: { name: 's', namespace: 'n', uid: 'u', generation: 3 },
    spec,
    status: isMarked ? markExpired({}, 3, now) : {},
  }) as unknown as Stored<Sandbox>
const child = (name: string, owner = 'u', deletionTimestamp?: string): Stored<KubeObject> =>
  ({
    metadata: {
      name,
      ownerReferences: [
        { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', name: 's', uid: owner, controller: true },
      ],
      ...(deletionTimestamp ? { deletionTimestamp } : {}),
    },
  }) as unknown as Stored<KubeObject>
const deletion = (kind: 'pod' | 'service', name: string) => ({
  kind: 'delete',
  child: kind,
  name,
  missingIsFine: true,
  failure: `failed to delete ${kind}`,
})

describe('the time of a Sandbox', () => {
  it.each([
    { when: 'it has no end', shutdownTime: undefined, is: { expired: false } },
    { when: 'it ends now', shutdownTime: '2026-01-01T00:00:00Z', is: { expired: true } },
    { when: 'it ended', shutdownTime: '2025-12-31T23:59:59Z', is: { expired: true } },
    {
      when: 'it ends in a minute',
      shutdownTime: '2026-01-01T00:01:00Z',
      is: { expired: false, requeueAfterMs: 60_000 },
    },
    {
      when: 'it ends in a second: clocks differ, so a little later',
      shutdownTime: '2026-01-01T00:00:01Z',
      is: { expired: false, requeueAfterMs: 2_000 },
    },
  ])('when $when', ({ shutdownTime, is }) => {
    expect(sandboxExpiry(sandbox(shutdownTime ? { shutdownTime } : {}), now)).toEqual(is)
  })

  it('its end is told in Ready, and what was said of scheduling goes', () => {
    const scheduled = {
      type: 'PodScheduled',
      status: 'True' as const,
      reason: 'Scheduled',
      message: '',
      lastTransitionTime: '2025-01-01T00:00:00Z',
    }
    const status = { conditions: [scheduled], podIPs: ['10.0.0.1'] }
    const ready = {
      type: 'Ready',
      status: 'False',
      reason: 'SandboxExpired',
      message: 'Sandbox has expired',
      observedGeneration: 3,
    }
    expect(markExpired(status, 3, now)).toMatchObject({ podIPs: ['10.0.0.1'], conditions: [ready] })
    const { conditions, ...rest } = expiredStatus(status, 3, now)
    expect(conditions).toMatchObject([ready])
    expect(rest).toEqual({})
  })
})

describe('the end of a Sandbox', () => {
  it.each<{ when: string; world: Partial<Parameters<typeof planExpiry>[0]>; plan: object }>([
    {
      when: 'its status does not say so yet: nothing is deleted before the reason is recorded',
      world: { sandbox: sandbox({ shutdownPolicy: 'Delete' }, false), pod: child('p') },
      plan: { move: 'mark' },
    },
    {
      when: 'it is kept: its children go',
      world: { pod: child('p'), service: child('v') },
      plan: { move: 'end', deletes: [deletion('pod', 'p'), deletion('service', 'v')], deletesItself: false },
    },
    {
      when: 'it asked to go',
      world: { sandbox: sandbox({ shutdownPolicy: 'Delete' }) },
      plan: { move: 'end', deletes: [], deletesItself: true },
    },
    {
      when: 'the Pod of its name belongs to another owner',
      world: { pod: child('p', 'other') },
      plan: { move: 'end', deletes: [], deletesItself: false },
    },
    {
      when: 'its Pod is going already',
      world: { pod: child('p', 'u', '2026-01-01T00:00:00Z'), service: child('v') },
      plan: { move: 'end', deletes: [deletion('service', 'v')], deletesItself: false },
    },
  ])('when $when', ({ world, plan }) => {
    expect(planExpiry({ sandbox: sandbox(), pod: undefined, service: undefined, ...world })).toEqual(plan)
  })
})
