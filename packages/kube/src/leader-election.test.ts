import type { ApiHandler } from '@corral/ports'
import type { Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { inProcessKubeClient } from './client.js'
import { type LeaseObject, planLease, runLeaderElection } from './leader-election.js'
import { MemoryHandler } from './memory-handler.test-suite.js'

const now = new Date('2026-01-01T00:00:10.123Z')
const lease = (spec: LeaseObject['spec']): Stored<LeaseObject> => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'l', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  ...(spec ? { spec } : {}),
})

describe('planLease', () => {
  const me = { identity: 'me', leaseMs: 15_000 }
  it.each<{ when: string; lease?: Stored<LeaseObject>; seenAgoMs?: number; type: string; spec?: object }>([
    {
      when: 'there is no lease',
      type: 'create',
      spec: {
        holderIdentity: 'me',
        leaseDurationSeconds: 15,
        renewTime: '2026-01-01T00:00:10.123000Z',
        leaseTransitions: 0,
      },
    },
    {
      when: 'we hold it',
      lease: lease({ holderIdentity: 'me', acquireTime: 'then', leaseTransitions: 4 }),
      type: 'update',
      spec: { acquireTime: 'then', leaseTransitions: 4 },
    },
    {
      when: 'another holds it',
      lease: lease({ holderIdentity: 'you', leaseDurationSeconds: 20 }),
      seenAgoMs: 19_000,
      type: 'wait',
    },
    {
      when: 'the other has been silent for as long as it promised',
      lease: lease({ holderIdentity: 'you', leaseDurationSeconds: 20, leaseTransitions: 4 }),
      seenAgoMs: 20_000,
      type: 'update',
      spec: { holderIdentity: 'me', acquireTime: '2026-01-01T00:00:10.123000Z', leaseTransitions: 5 },
    },
    { when: 'it was released', lease: lease({ holderIdentity: '' }), type: 'update', spec: { holderIdentity: 'me' } },
    { when: 'it is empty', lease: lease(undefined), type: 'update', spec: { holderIdentity: 'me' } },
  ])('when $when', ({ lease: seen, seenAgoMs = 0, type, spec }) => {
    const move = planLease({ lease: seen, seenAtMs: 100_000 - seenAgoMs }, me, 100_000, now)
    expect(move).toMatchObject(spec ? { type, spec } : { type })
  })
})

describe('runLeaderElection', () => {
  const path = '/apis/coordination.k8s.io/v1/namespaces/ns/leases/l'
  const holder = (handler: MemoryHandler) =>
    (handler.objects.get(path) as LeaseObject | undefined)?.spec?.holderIdentity

  function candidate(handler: ApiHandler, identity: string, log: string[]) {
    const stop = new AbortController()
    const done = runLeaderElection({
      client: inProcessKubeClient(handler),
      namespace: 'ns',
      name: 'l',
      identity,
      leaseMs: 10_000,
      renewMs: 5_000,
      retryMs: 10,
      signal: stop.signal,
      async onStarted(signal) {
        log.push(`${identity} leads`)
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
        log.push(`${identity} rests`)
      },
      onLost: () => log.push(`${identity} lost`),
    })
    return {
      done,
      stop: () => {
        stop.abort()
        return done
      },
    }
  }

  it('has one leader at a time and hands over at once when it leaves', async () => {
    const handler = new MemoryHandler()
    const log: string[] = []
    const a = candidate(handler, 'a', log)
    await expect.poll(() => log).toEqual(['a leads'])
    const b = candidate(handler, 'b', log)
    await expect.poll(() => handler.requests.length).toBeGreaterThan(6)
    expect(log).toEqual(['a leads'])
    await a.stop()
    await expect.poll(() => log).toEqual(['a leads', 'a rests', 'b leads'])
    expect(holder(handler)).toBe('b')
    await b.stop()
    expect(holder(handler)).toBe('')
  })

  it('gives the lease up on a server that answers slower than it retries', async () => {
    const handler = new MemoryHandler()
    const log: string[] = []
    const slowly: ApiHandler = {
      async handle(request) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        if (request.signal?.aborted) throw request.signal.reason
        return handler.handle(request)
      },
      connect: () => handler.connect(),
    }
    const a = candidate(slowly, 'a', log)
    await expect.poll(() => log).toEqual(['a leads'])
    await a.stop()
    expect(holder(handler)).toBe('')
  })

  it('gives the lease up although the answer to its last renewal was lost', async () => {
    const handler = new MemoryHandler()
    const log: string[] = []
    const a = candidate(handler, 'a', log)
    await expect.poll(() => log).toEqual(['a leads'])
    const handle = handler.handle.bind(handler)
    handler.handle = async (request) => {
      const answer = await handle(request)
      // From here on every renewal is written and none is heard of.
      if (request.method === 'PUT' && answer.status === 200 && holder(handler) === 'a')
        throw new Error('the connection is gone')
      return answer
    }
    const before = handler.requests.length
    await expect.poll(() => handler.requests.length).toBeGreaterThan(before + 4)
    await a.stop()
    expect(holder(handler)).toBe('')
  })

  it('stops leading when another took the lease', async () => {
    const handler = new MemoryHandler()
    const log: string[] = []
    const a = candidate(handler, 'a', log)
    await expect.poll(() => log).toEqual(['a leads'])
    const held = handler.objects.get(path) as Stored<LeaseObject>
    handler.put(
      path.slice(0, -2),
      { ...held, spec: { holderIdentity: 'thief', leaseDurationSeconds: 60 } } as LeaseObject,
      false,
    )
    await a.done
    expect(log).toEqual(['a leads', 'a lost', 'a rests'])
    expect(holder(handler)).toBe('thief')
  })
})
