import { type ManagerOptions, parseManagerOptions } from '@corral/controllers'
import { EventsV1, Pods, Sandboxes, SandboxTemplates, SandboxWarmPools } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { upstreamRelease } from '../../packages/controllers/src/shared/upstream-release.js'
import { condition, pool, readySandbox, sandbox, startTestCluster, template, waitFor } from './cluster.js'
import { ref } from './objects.js'
import { refusal, refuse, startPasses } from './passes.js'

const later =
  (release: string) =>
  (options: ManagerOptions): void => {
    const behaviour = upstreamRelease(release)
    if (!behaviour) throw new Error(`${release} is no release`)
    options.sandbox.upstreamRelease = behaviour
    options.pool.upstreamRelease = behaviour
  }
const newest = later('1.0.11')
const patch = (spec: object) => ({ type: 'merge', body: { spec } }) as const
const running = {
  phase: 'Running',
  podIPs: [{ ip: '10.0.0.1' }],
  conditions: [{ type: 'Ready', status: 'True' }],
}

/** Already on a node, so that no scheduler has its say. */
const placed = { spec: { nodeName: 'somewhere', containers: [{ name: 'main', image: 'busybox:1' }] } }

describe('which release is followed', () => {
  it.each([
    { release: '1.0.3', on: [] },
    { release: 'v1.0.4', on: ['sandboxEvents', 'invalidConfiguration'] },
    {
      release: '1.0.7',
      on: ['sandboxEvents', 'invalidConfiguration', 'lifecycleMetrics', 'poolWithoutTemplate', 'gatedMembers'],
    },
  ])('$release has $on', ({ release, on }) => {
    const behaviour = Object.entries(upstreamRelease(release) ?? {})
    expect(behaviour.filter(([, isOn]) => isOn).map(([name]) => name)).toEqual(on)
  })

  it('is 1.0.3 unless said otherwise, and a release that nobody knows is refused', () => {
    const parsed = parseManagerOptions([])
    const { sandbox: { upstreamRelease: found } = {} } = 'command' in parsed ? parsed.command.options : {}
    expect(found).toEqual(upstreamRelease('1.0.3'))
    expect(parseManagerOptions(['--upstream-release=1.1.0'])).toHaveProperty('error')
    const without = parseManagerOptions(['--upstream-release=1.0.11', '--disable-sandbox-events'])
    expect('command' in without && without.command.options.sandbox.upstreamRelease?.sandboxEvents).toBe(false)
  })
})

describe('events of Sandboxes, since 1.0.4', () => {
  const reasons = (events: readonly { type: string; reason: string }[]): string[] =>
    events.map(({ type, reason }) => `${type} ${reason}`)

  it('tell of the Pod, readiness and suspension, once each', async () => {
    await using passes = await startPasses(newest)
    await passes.client.create(Sandboxes, sandbox('box'))
    await passes.sandbox('box')
    await passes.client.patch(Pods, ref('box'), { type: 'merge', body: { status: running } }, { subresource: 'status' })
    await passes.sandbox('box')
    await passes.sandbox('box')
    await passes.client.patch(Sandboxes, ref('box'), patch({ operatingMode: 'Suspended' }))
    await passes.sandbox('box')
    await passes.sandbox('box')
    expect(reasons(passes.events)).toEqual([
      'Normal SandboxPodCreated',
      'Normal SandboxReady',
      'Normal SandboxSuspended',
    ])
  })

  it.each([
    { phase: 'Succeeded', event: 'Normal PodSucceeded' },
    { phase: 'Failed', event: 'Warning PodFailed' },
  ])('tell of a Pod that ended: $phase', async ({ phase, event }) => {
    await using passes = await startPasses(newest)
    await passes.client.create(Sandboxes, sandbox('box'))
    await passes.sandbox('box')
    await passes.client.patch(
      Pods,
      ref('box'),
      { type: 'merge', body: { status: { phase } } },
      { subresource: 'status' },
    )
    await passes.sandbox('box')
    await passes.sandbox('box')
    expect(reasons(passes.events).slice(1)).toEqual([event])
  })

  it.each([
    { policy: 'Retain', events: ['Normal SandboxExpired'] },
    { policy: 'Delete', events: [] },
  ] as const)('tell of an expired Sandbox that stays: $policy', async ({ policy, events }) => {
    await using passes = await startPasses(newest)
    const shutdownTime = '2020-01-01T00:00:00Z'
    await passes.client.create(Sandboxes, sandbox('box', { shutdownTime, shutdownPolicy: policy }))
    await passes.sandbox('box')
    await passes.sandbox('box')
    expect(reasons(passes.events)).toEqual(events)
  })

  it('tell why a Pod was not made', async () => {
    await using passes = await startPasses(newest)
    await passes.client.create(Sandboxes, sandbox('box'))
    passes.fault = refuse(
      ({ path, method }) => method === 'POST' && path.endsWith('/pods'),
      refusal(403, 'Forbidden', 'exceeded quota'),
    )
    await expect(passes.sandbox('box')).rejects.toThrow('exceeded quota')
    expect(passes.events).toMatchObject([
      { type: 'Warning', reason: 'SandboxPodCreateFailed', note: expect.stringContaining('exceeded quota') as string },
    ])
  })

  it('are not sent by 1.0.3', async () => {
    await using passes = await startPasses(later('1.0.3'))
    await passes.client.create(Sandboxes, sandbox('box'))
    await passes.sandbox('box')
    expect(passes.events).toEqual([])
  })
})

describe('what the server refuses for good', () => {
  const invalid = refuse(
    ({ path, method }) => method === 'POST' && path.endsWith('/services'),
    refusal(422, 'Invalid', 'no such name'),
  )

  it('is InvalidConfiguration and rests, since 1.0.4', async () => {
    await using passes = await startPasses(newest)
    await passes.client.create(Sandboxes, sandbox('box', { service: true }))
    passes.fault = invalid
    expect(await passes.sandbox('box')).toEqual({})
    const { reason, message } = condition(await passes.client.get(Sandboxes, ref('box')), 'Ready') ?? {}
    expect([reason, message]).toEqual(['InvalidConfiguration', 'no such name'])
  })

  it('is an error that is tried again with 1.0.3', async () => {
    await using passes = await startPasses()
    await passes.client.create(Sandboxes, sandbox('box', { service: true }))
    passes.fault = invalid
    await expect(passes.sandbox('box')).rejects.toThrow('no such name')
    expect(condition(await passes.client.get(Sandboxes, ref('box')), 'Ready')?.reason).toBe('ReconcilerError')
  })
})

it.each([
  { release: '1.0.3', ready: 'True' },
  { release: '1.0.11', ready: 'False' },
])('a Sandbox whose Pod is terminating: Ready=$ready with $release', async ({ release, ready }) => {
  await using passes = await startPasses(later(release))
  await passes.client.create(Sandboxes, sandbox('box'))
  await passes.sandbox('box')
  const held = { metadata: { finalizers: ['example.org/hold'] }, status: running }
  await passes.client.patch(Pods, ref('box'), { type: 'merge', body: held })
  await passes.client.patch(Pods, ref('box'), { type: 'merge', body: held }, { subresource: 'status' })
  await passes.client.delete(Pods, ref('box'))
  await passes.sandbox('box')
  expect(condition(await passes.client.get(Sandboxes, ref('box')), 'Ready')?.status).toBe(ready)
})

describe('pools, since 1.0.7', () => {
  it('keep members that scheduling gates hold back', async () => {
    for (const [release, left] of [
      ['1.0.3', 0],
      ['1.0.7', 1],
    ] as const) {
      await using passes = await startPasses(later(release))
      await passes.client.create(SandboxTemplates, template('tmpl', { podTemplate: placed }))
      await passes.client.create(SandboxWarmPools, pool('pool', 1))
      await passes.pool('pool')
      const [member] = (await passes.client.list(Sandboxes)).items
      const name = member?.metadata.name ?? ''
      await passes.sandbox(name)
      const gated = { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message: 'gated' }
      const body = { status: { phase: 'Pending', conditions: [gated] } }
      await passes.client.patch(Pods, ref(name), { type: 'merge', body }, { subresource: 'status' })
      passes.nowMs += 10 * 60_000
      await passes.pool('pool')
      expect((await passes.client.list(Sandboxes)).items, release).toHaveLength(left)
    }
  })

  it('say once that their template is missing, look again in a minute, and say when it is over', async () => {
    await using passes = await startPasses(newest)
    await passes.client.create(SandboxWarmPools, pool('pool', 1))
    await passes.client.create(SandboxWarmPools, pool('none', 0))
    expect(await passes.pool('pool')).toEqual({ requeueAfterMs: 60_000 })
    await passes.pool('pool')
    expect(await passes.pool('none')).toEqual({})
    expect(passes.events).toEqual([
      {
        type: 'Warning',
        reason: 'WarmPoolNotProgressing',
        action: 'Reconciling',
        note: 'SandboxTemplate "tmpl" not found',
      },
    ])
    await passes.client.create(SandboxTemplates, template())
    await passes.pool('pool')
    expect(passes.events.at(-1)?.reason).toBe('WarmPoolProgressing')
  })
})

it('metrics of later releases count suspending, resuming, ends and members', async () => {
  await using cluster = await startTestCluster()
  const { metrics } = await cluster.startManager(newest)
  const { client } = cluster
  await client.create(SandboxTemplates, template())
  await client.create(SandboxWarmPools, pool('pool', 2))
  await client.create(Sandboxes, sandbox('box'))
  await readySandbox(client, 'box')
  await client.patch(Sandboxes, ref('box'), patch({ operatingMode: 'Suspended' }))
  await waitFor(client, Sandboxes, 'box', (object) => condition(object, 'Suspended')?.status === 'True')
  await expect.poll(() => metrics.getSingleMetricAsString('agent_sandboxes')).toMatch(/operating_mode="Suspended"\} 1/)
  await client.patch(Sandboxes, ref('box'), patch({ operatingMode: 'Running' }))
  await readySandbox(client, 'box')
  await client.patch(Sandboxes, ref('box'), patch({ shutdownTime: '2020-01-01T00:00:00Z' }))
  const text = (): Promise<string> => metrics.metrics()
  await expect.poll(text).toMatch(/agent_sandbox_expired_total\{.*shutdown_policy="Retain"\} 1/)
  await expect.poll(text).toMatch(/agent_sandbox_warmpool_size\{.*sandbox_status="ready"\} 2/)
  const said = await text()
  for (const [family, result] of [
    ['suspend', 'requested'],
    ['suspend', 'pod_terminated'],
    ['resume', 'requested'],
    ['resume', 'ready'],
  ])
    expect(said).toMatch(new RegExp(`agent_sandbox_${family}_total\\{.*result="${result}"\\} 1`))
  expect(said).toMatch(/agent_sandbox_suspend_latency_ms_count\{.*\} 1/)
  expect(said).toMatch(/agent_sandbox_resume_latency_ms_count\{.*\} 1/)
})

it('an event that repeats is counted on the first instead of being sent again', async () => {
  await using cluster = await startTestCluster({ node: false })
  await cluster.startManager(newest)
  cluster.fault = ({ method, path }) => (method === 'POST' && path.endsWith('/pods') ? new Error('no room') : undefined)
  await cluster.client.create(Sandboxes, sandbox('box'))
  const failures = async () => {
    const { items } = await cluster.client.list(EventsV1)
    return items.filter(({ reason }) => reason === 'SandboxPodCreateFailed').map(({ series }) => series?.count ?? 1)
  }
  // One before the status says so and makes a new version of the Sandbox, one series after.
  await expect.poll(async () => (await failures()).some((count) => count > 1)).toBe(true)
  expect((await failures()).length).toBeLessThanOrEqual(3)
})
