import type { AgentTask, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { claimFor, ensurePool, namesNoPool, poolOf } from './claim.js'

const task = (spec: Partial<AgentTask['spec']> = {}): Stored<AgentTask> => ({
  apiVersion: 'corral.dev/v1alpha1',
  kind: 'AgentTask',
  metadata: {
    name: 'task-abc',
    namespace: 'corral',
    uid: 'uid-1',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: { repository: { url: '/r' }, prompt: 'Do it', agent: { name: 'command', command: 'true' }, ...spec },
})
const now = new Date('2026-01-01T00:00:00Z')

describe('the claim of a task', () => {
  it('S4-A3: is named after it, labelled with it and owned by it, and leaves what it works on to the daemon', () => {
    const claim = claimFor(task(), 'default', now)
    expect(claim.metadata).toMatchObject({
      name: 'task-abc',
      namespace: 'corral',
      labels: { 'corral.dev/task': 'task-abc' },
      ownerReferences: [
        { kind: 'AgentTask', name: 'task-abc', uid: 'uid-1', controller: true, blockOwnerDeletion: false },
      ],
    })
    expect(claim.metadata).not.toHaveProperty('annotations')
    expect(claim.spec).toMatchObject({ warmPoolRef: { name: 'default' } })
    expect(claim.spec.env).toBeUndefined()
  })

  it('S1-K7: ends by itself some time after the task must have ended', () => {
    const ends = (timeoutSeconds?: number): number =>
      Date.parse(
        claimFor(task(timeoutSeconds ? { timeoutSeconds } : {}), 'p', now).spec.lifecycle?.shutdownTime ?? '',
      ) - now.getTime()
    expect(ends()).toBeGreaterThan(1800_000)
    expect(ends(7200) - ends(3600)).toBe(3600_000)
    const held = (holdSandboxSeconds: number) =>
      Date.parse(claimFor(task({ holdSandboxSeconds }), 'p', now).spec.lifecycle?.shutdownTime ?? '') - now.getTime()
    // Five minutes to get a sandbox, half an hour of work, three quarters of slack.
    expect(held(0)).toBe((5 + 30 + 45) * 60_000)
    expect(held(600) - held(0)).toBe(600_000)
    expect(claimFor(task(), 'p', now).spec.lifecycle?.shutdownPolicy).toBe('Delete')
  })

  it('gives the sandbox the network that set-up and agent are granted, and none without a grant', () => {
    const egress = ['registry.example:443', 'api.example:443']
    const annotationsOf = (spec: Partial<AgentTask['spec']>) =>
      claimFor(task(spec), 'default', now).spec.additionalPodMetadata?.annotations
    expect(annotationsOf({ egress })).toEqual({ 'corral.dev/egress': egress.join(', ') })
    expect(annotationsOf({ setupEgress: ['only.setup:443'] })).toEqual({ 'corral.dev/egress': 'only.setup:443' })
    expect(annotationsOf({})).toBeUndefined()
  })

  it.each([
    { asks: 'for nothing', sandbox: undefined, pool: { name: 'default' } },
    { asks: 'for a pool', sandbox: { pool: 'big' }, pool: { name: 'big' } },
    { asks: 'for a template', sandbox: { template: 'py' }, pool: { name: 'corral-py', template: 'py' } },
  ])('goes to pool $pool.name when the task asks $asks', ({ sandbox, pool }) => {
    expect(poolOf(task(sandbox ? { sandbox } : {}))).toEqual(pool)
  })
})

describe('the pool a claim is made in', () => {
  const creating = (answer: () => Promise<unknown>) => {
    const made: unknown[] = []
    const create = (_: unknown, object: unknown): Promise<unknown> => {
      made.push(object)
      return answer()
    }
    return { made, client: { create } as unknown as Parameters<typeof ensurePool>[0] }
  }
  const refused = (code: string): Error => Object.assign(new Error(code), { code })

  it('is made for a template, with no replicas: it starts sandboxes on demand', async () => {
    const { made, client } = creating(async () => undefined)
    await ensurePool(client, 'corral', { name: 'corral-py', template: 'py' })
    expect(made).toEqual([
      {
        apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
        kind: 'SandboxWarmPool',
        metadata: { name: 'corral-py', namespace: 'corral' },
        spec: { replicas: 0, sandboxTemplateRef: { name: 'py' } },
      },
    ])
  })

  it('is not made where the task names a pool', async () => {
    const { made, client } = creating(async () => undefined)
    await ensurePool(client, 'corral', { name: 'big' })
    expect(made).toEqual([])
  })

  it('may be there already; any other refusal fails the pass', async () => {
    const exists = creating(() => Promise.reject(refused('AlreadyExists')))
    await ensurePool(exists.client, 'corral', { name: 'p', template: 't' })
    const forbidden = creating(() => Promise.reject(refused('Forbidden')))
    await expect(ensurePool(forbidden.client, 'corral', { name: 'p', template: 't' })).rejects.toThrow('Forbidden')
  })

  it.each([
    { sandbox: undefined, is: true },
    { sandbox: {}, is: true },
    { sandbox: { pool: 'big' }, is: false },
    { sandbox: { template: 'py' }, is: false },
  ])('of the platform is used for $sandbox: $is', ({ sandbox, is }) => {
    expect(namesNoPool(task(sandbox ? { sandbox } : {}))).toBe(is)
  })
})
