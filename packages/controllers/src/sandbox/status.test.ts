import { KubeError, type Pod, type Sandbox, type Service, type Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { isNodeNameOnly, isRefusedForGood, type SandboxChildren, sandboxStatus } from './status.js'

const at = new Date('2026-01-01T00:00:00Z')
const meta = { uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z', namespace: 'ns' }

function box(change: Partial<Sandbox['spec']> = {}, status?: Sandbox['status']): Stored<Sandbox> {
  return {
    apiVersion: 'agents.x-k8s.io/v1beta1',
    kind: 'Sandbox',
    metadata: { ...meta, name: 'box', generation: 3 },
    spec: { podTemplate: { spec: { containers: [] } }, ...change },
    ...(status && { status }),
  }
}

const ours = [{ apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', name: 'box', uid: 'u', controller: true }]

function pod(status: Pod['status'], isOurs = true): Stored<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...meta, uid: 'p', name: 'box', ...(isOurs && { ownerReferences: ours }) },
    spec: { containers: [], nodeName: 'n1' },
    ...(status && { status }),
  }
}

const service: Stored<Service> = { apiVersion: 'v1', kind: 'Service', metadata: { ...meta, name: 'box' } }
const scheduled = { type: 'PodScheduled', status: 'True' }
const podReady = { type: 'Ready', status: 'True' }
const running = { phase: 'Running', conditions: [scheduled, podReady], podIPs: [{ ip: '10.0.0.1' }] }

interface Row {
  when: string
  sandbox?: Stored<Sandbox>
  pod?: Stored<Pod>
  podError?: string
  pvcError?: string
  service?: Stored<Service>
  multiplePods?: number
  expected: Record<string, string | undefined>
}

function statusOf(row: Row): ReturnType<typeof sandboxStatus> {
  const children: SandboxChildren = {
    sandbox: row.sandbox ?? box(),
    nameHash: 'hash',
    clusterDomain: 'my-company.local',
    pvcErrors: row.pvcError ? [new Error(row.pvcError)] : [],
    pod: { object: row.pod, errors: row.podError ? [new Error(row.podError)] : [] },
    service: { object: row.service, errors: [] },
    ...(row.multiplePods && { multiplePods: { count: row.multiplePods } }),
    now: at,
  }
  return sandboxStatus(children)
}

/** `status reason: message` per condition. */
function told(status: ReturnType<typeof sandboxStatus>): Record<string, string> {
  return Object.fromEntries(
    (status.conditions ?? []).map(({ type, status: value, reason, message }) => [
      type,
      `${value} ${reason}: ${message}`,
    ]),
  )
}

describe('conditions of a Sandbox', () => {
  it.each<Row>([
    {
      when: 'scenario 15: nothing exists and a Service is wanted',
      sandbox: box({ service: true }),
      expected: {
        Ready: 'False DependenciesNotReady: Pod does not exist; Service does not exist',
        PodScheduled: undefined,
        Finished: undefined,
      },
    },
    {
      when: 'scenario 16: a Service exists though none is asked for',
      service,
      expected: { Ready: 'False DependenciesNotReady: Pod does not exist; Service Exists' },
    },
    {
      when: 'scenario 17: the Pod is pending and says nothing of scheduling',
      pod: pod({ phase: 'Pending' }),
      service,
      expected: {
        PodScheduled: 'Unknown PodSchedulingUnknown: Pod has not reported a PodScheduled condition yet',
        Ready: 'False DependenciesNotReady: Pod exists with phase: Pending; Service Exists',
      },
    },
    {
      when: 'scenario 18: the Pod runs without being Ready',
      pod: pod({ phase: 'Running', conditions: [scheduled, { type: 'Ready', status: 'False' }] }),
      service,
      expected: {
        PodScheduled: 'True PodScheduled: ',
        Ready: 'False DependenciesNotReady: Pod is Running but not Ready; Service Exists',
      },
    },
    {
      when: 'scenario 19: the Pod is Ready without an address',
      pod: pod({ phase: 'Running', conditions: [podReady] }),
      expected: { Ready: 'False DependenciesNotReady: Pod is Ready but has no podIPs yet' },
    },
    {
      when: 'scenario 20: the Pod has no phase yet',
      pod: pod(undefined),
      expected: { Ready: 'False DependenciesNotReady: Pod exists with phase: ' },
    },
    {
      when: 'scenario 21: the phase is Unknown',
      pod: pod({ phase: 'Unknown' }),
      expected: { Ready: 'False DependenciesNotReady: Pod exists with phase: Unknown' },
    },
    {
      when: 'scenario 22: the Pod failed',
      pod: pod({ phase: 'Failed' }),
      expected: { Finished: 'True PodFailed: Pod failed', Ready: 'False PodFailed: Pod failed' },
    },
    {
      when: 'scenario 22: the Pod succeeded',
      pod: pod({ phase: 'Succeeded' }),
      expected: {
        Finished: 'True PodSucceeded: Pod completed successfully',
        Ready: 'False PodSucceeded: Pod completed successfully',
      },
    },
    {
      when: 'scenario 23: suspended, and an unowned finished Pod has the name',
      sandbox: box({ operatingMode: 'Suspended' }),
      pod: pod({ phase: 'Succeeded' }, false),
      expected: {
        Finished: undefined,
        Suspended: 'False PodNotOwned: Refused to delete pod because it is not owned by this sandbox',
        Ready: 'False SandboxSuspended: Sandbox is suspending',
      },
    },
    {
      when: 'scenario 24: the Pod cannot be scheduled',
      pod: pod({
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' }],
      }),
      expected: { PodScheduled: 'False Unschedulable: 0/3 nodes' },
    },
    {
      when: 'scenario 24: scheduling is gated',
      pod: pod({
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message: 'gated' }],
      }),
      expected: { PodScheduled: 'False SchedulingGated: gated' },
    },
    {
      when: 'scenario 25: not scheduled, without a reason',
      pod: pod({ conditions: [{ type: 'PodScheduled', status: 'False' }] }),
      expected: { PodScheduled: 'False PodSchedulingUnknown: ' },
    },
    {
      when: 'scenario 27: suspended, and the Pod cannot be looked at',
      sandbox: box({ operatingMode: 'Suspended' }),
      podError: 'pod get failed: boom',
      expected: {
        Suspended: 'Unknown PodStateUnknown: Pod state is unknown. Sandbox suspension cannot be confirmed',
        PodScheduled: 'Unknown PodSchedulingUnknown: Pod state is unknown. Pod scheduling cannot be determined',
        Ready: 'False ReconcilerError: Error seen: pod get failed: boom',
      },
    },
    {
      when: 'scenario 28: running, scheduled before, and the Pod cannot be looked at',
      sandbox: box(
        {},
        {
          conditions: [
            {
              type: 'PodScheduled',
              status: 'True',
              reason: 'PodScheduled',
              message: '',
              lastTransitionTime: '2025-01-01T00:00:00Z',
            },
          ],
        },
      ),
      podError: 'pod get failed: boom',
      expected: {
        PodScheduled: 'Unknown PodSchedulingUnknown: Pod state is unknown. Pod scheduling cannot be determined',
      },
    },
    {
      when: 'scenario 29: suspended before and running now, the Pod missing',
      sandbox: box(
        { operatingMode: 'Running' },
        {
          conditions: [
            {
              type: 'Suspended',
              status: 'True',
              reason: 'PodTerminated',
              message: '',
              lastTransitionTime: '2025-01-01T00:00:00Z',
            },
          ],
        },
      ),
      expected: { Suspended: 'False NotSuspended: Sandbox is not suspended' },
    },
    {
      when: 'scenario 30: two Pods and a volume that failed',
      multiplePods: 2,
      pvcError: 'no volume',
      expected: {
        Ready:
          'False MultiplePods: multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod',
      },
    },
    {
      when: 'a volume and the Pod failed',
      pvcError: 'no volume',
      podError: 'no pod',
      expected: { Ready: 'False ReconcilerError: Error seen: no volume\nno pod' },
    },
    {
      when: 'suspended and gone',
      sandbox: box({ operatingMode: 'Suspended' }),
      expected: {
        Suspended: 'True PodTerminated: Pod has been terminated. Sandbox is suspended',
        Ready: 'False SandboxSuspended: Sandbox is suspended',
      },
    },
    {
      when: 'everything is there',
      sandbox: box({ service: true }),
      pod: pod(running),
      service,
      expected: { Ready: 'True DependenciesReady: Pod is Ready; Service Exists', PodScheduled: 'True PodScheduled: ' },
    },
  ])('$when', (row) => {
    expect(told(statusOf(row))).toMatchObject(
      Object.fromEntries(Object.entries(row.expected).filter(([, text]) => text !== undefined)),
    )
    for (const [type, text] of Object.entries(row.expected)) {
      if (text === undefined) expect(told(statusOf(row))).not.toHaveProperty(type)
    }
  })

  it('carries the generation it was computed for', () => {
    const { conditions } = statusOf({ when: '', pod: pod(running), expected: {} })
    expect(conditions?.map(({ observedGeneration }) => observedGeneration)).toEqual([3, 3, 3])
  })
})

describe('other fields', () => {
  it('scenario 68: the FQDN ends in the cluster domain', () => {
    expect(statusOf({ when: '', service, expected: {} }).serviceFQDN).toBe('box.ns.svc.my-company.local')
  })

  it('shows addresses and node of a Pod of ours only', () => {
    const own = statusOf({ when: '', pod: pod(running), expected: {} })
    expect(own).toMatchObject({
      podIPs: ['10.0.0.1'],
      nodeName: 'n1',
      selector: 'agents.x-k8s.io/sandbox-name-hash=hash',
    })
    const starting = statusOf({ when: '', pod: pod({ phase: 'Pending' }), expected: {} })
    expect(Object.keys(starting)).toEqual(['selector', 'nodeName', 'conditions'])
    const foreign = statusOf({ when: '', pod: pod(running, false), expected: {} })
    expect(Object.keys(foreign)).toEqual(['selector', 'conditions'])
  })
})

describe('what is not worth another try, or a write', () => {
  const invalid = new KubeError('Invalid', 'no', { status: 422 })
  it.each([
    { when: 'everything that failed is invalid', errors: [invalid, invalid], is: true },
    {
      when: 'one failed for another reason',
      errors: [invalid, new KubeError('Conflict', 'no', { status: 409 })],
      is: false,
    },
    { when: 'nothing failed', errors: [], is: false },
  ])('is refused for good when $when: $is', ({ errors, is }) => {
    expect(isRefusedForGood(errors)).toBe(is)
  })

  const ready = {
    conditions: [{ type: 'Ready', status: 'True' as const, reason: 'x', message: '', lastTransitionTime: '' }],
  }
  it.each([
    { when: 'the node is all that changed', after: {}, diff: { nodeName: 'n' }, is: true },
    { when: 'the Sandbox can be used', after: ready, diff: { nodeName: 'n' }, is: false },
    { when: 'more changed', after: {}, diff: { nodeName: 'n', podIPs: [] }, is: false },
    { when: 'something else changed', after: {}, diff: { podIPs: [] }, is: false },
    { when: 'nothing changed', after: {}, diff: {}, is: false },
  ])('a status waits for the next write when $when: $is', ({ after, diff, is }) => {
    expect(isNodeNameOnly({}, after, diff)).toBe(is)
  })
})
