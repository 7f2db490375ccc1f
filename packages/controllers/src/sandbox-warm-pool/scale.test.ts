import { KubeError, type Sandbox, type SandboxWarmPool, type Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import type { PoolReconcileContext } from './reconcile-context.js'
import { removeMember, scale } from './scale.js'

const meta = { uid: 'u', resourceVersion: '7', creationTimestamp: '2026-01-01T00:00:00Z' }
const member = (name: string): Stored<Sandbox> => ({
  ...{ apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox' },
  metadata: { ...meta, name, namespace: 'ns', uid: name },
  spec: { podTemplate: { spec: { containers: [] } } },
})
const refusal = (code: 'Conflict' | 'NotFound' | 'InternalError', status: number) =>
  new KubeError(code, 'no', { status })

/** A pool of no members whose server answers deletes like this. */
function context(answer: (name: string) => Error | undefined, isSatisfied = true) {
  const asked: unknown[] = []
  const expected: string[] = []
  const cleared: string[] = []
  const ports = {
    options: { maxBatchSize: 300, markEvictable: false },
    expectations: {
      isSatisfied: () => isSatisfied,
      expectDeletion: (_key: string, uid: string) => void expected.push(uid),
      clearDeletion: (_key: string, uid: string) => void cleared.push(uid),
    },
    client: {
      delete: async (_kind: unknown, { name }: { name: string }, { preconditions }: { preconditions: object }) => {
        asked.push([name, preconditions])
        const error = answer(name)
        if (error) throw error
      },
    },
  }
  const pool = { metadata: { ...meta, name: 'pool', namespace: 'ns' }, spec: { replicas: 0 } }
  const made: PoolReconcileContext = {
    ...{ key: 'ns/pool', pool: pool as Stored<SandboxWarmPool>, template: undefined, arriving: 0 },
    ports: ports as unknown as PoolReconcileContext['ports'],
    memory: {
      holds: { remainingMs: () => 0 },
      settling: { remainingMs: () => 0 },
    } as unknown as PoolReconcileContext['memory'],
    ...{ signal: new AbortController().signal, errors: [], requeues: [] },
  }
  return { made, asked, expected, cleared }
}
const members = (...active: Stored<Sandbox>[]) => ({
  ...{ active, terminatingCount: 0, stale: [], unlabelled: [], orphans: [], staleOrphans: [] },
})

describe('a member is deleted only as the pool saw it', () => {
  it.each<{
    when: string
    error?: Error
    isOurs?: boolean
    fine?: boolean
    answer: boolean
    errors: number
    requeues?: number[]
  }>([
    { when: 'the server agrees', answer: true, errors: 0 },
    { when: 'a claim took it meanwhile', error: refusal('Conflict', 409), answer: false, errors: 0 },
    {
      when: 'an orphan was taken meanwhile: no event brings the pool back',
      error: refusal('Conflict', 409),
      ...{ isOurs: false, answer: false, errors: 0, requeues: [500] },
    },
    { when: 'it is gone, which is as well', error: refusal('NotFound', 404), fine: true, answer: false, errors: 0 },
    { when: 'it is gone, which is not', error: refusal('NotFound', 404), fine: false, answer: false, errors: 1 },
    { when: 'the server fails', error: refusal('InternalError', 500), fine: true, answer: false, errors: 1 },
  ])('when $when', async ({ error, isOurs = true, fine = true, answer, errors, requeues = [] }) => {
    const { made, asked, expected, cleared } = context(() => error)
    expect(await removeMember(made, member('a'), { isOurs, missingIsFine: fine })).toBe(answer)
    expect([made.errors.length, made.requeues]).toEqual([errors, requeues])
    expect(asked).toEqual([['a', { uid: 'a', resourceVersion: '7' }]])
    expect([expected, cleared]).toEqual([isOurs ? ['a'] : [], error ? ['a'] : []])
  })
})

describe('a pool that is to have fewer members', () => {
  it('deletes those it has too many of, and tells the first refusal once', async () => {
    const { made, asked } = context((name) => (name === 'a' ? refusal('InternalError', 500) : undefined))
    await scale(made, members(member('a'), member('b')))
    expect(made.errors).toEqual([expect.objectContaining({ code: 'InternalError' })])
    expect(asked.length).toBeGreaterThan(0)
    const fine = context(() => undefined)
    await scale(fine.made, members(member('a'), member('b')))
    expect(fine.made.errors).toEqual([])
    expect(fine.asked).toHaveLength(2)
  })

  it('waits while it does not know what became of those it deleted before', async () => {
    const { made, asked } = context(() => undefined, false)
    await scale(made, members(member('a')))
    expect([asked, made.requeues]).toEqual([[], [30_000]])
  })
})
