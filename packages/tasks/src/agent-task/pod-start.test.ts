import type { AgentTask, Pod, SandboxClaim, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { awaitsPod, findPodProblem, podProblemOf } from './pod-start.js'

const container = { name: 'sandbox', ready: false, restartCount: 0, image: 'a', imageID: '' }
const waiting = (reason: string, message?: string): Pod => ({
  status: { containerStatuses: [{ ...container, state: { waiting: { reason, ...(message ? { message } : {}) } } }] },
})
const unscheduled: Pod = {
  status: {
    conditions: [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: '0/3 nodes are available: 3 Too many pods.',
      },
    ],
  },
}

describe('what keeps a pod from starting', () => {
  it.each<{
    when: string
    pod: Pod
    means: [code: string, reason: string] | undefined
    waits?: 'not' | 'some' | 'all'
  }>([
    {
      when: 'its image cannot be pulled',
      pod: waiting('ImagePullBackOff'),
      means: ['ImagePullFailed', 'ImagePullBackOff'],
      waits: 'some',
    },
    {
      when: 'the first pull failed',
      pod: waiting('ErrImagePull'),
      means: ['ImagePullFailed', 'ErrImagePull'],
      waits: 'some',
    },
    {
      when: 'its image has no valid name',
      pod: waiting('InvalidImageName'),
      means: ['ImagePullFailed', 'InvalidImageName'],
      waits: 'not',
    },
    {
      when: 'its image must be on the node and is not',
      pod: waiting('ErrImageNeverPull'),
      means: ['ImagePullFailed', 'ErrImageNeverPull'],
      waits: 'not',
    },
    {
      when: 'it names a Secret that is missing',
      pod: waiting('CreateContainerConfigError'),
      means: ['SandboxCannotStart', 'CreateContainerConfigError'],
      waits: 'some',
    },
    {
      when: 'it ends again and again',
      pod: waiting('CrashLoopBackOff'),
      means: ['SandboxCannotStart', 'CrashLoopBackOff'],
      waits: 'some',
    },
    { when: 'no node takes it', pod: unscheduled, means: ['Unschedulable', 'Unschedulable'], waits: 'all' },
    { when: 'it is on its way up', pod: waiting('ContainerCreating'), means: undefined },
    { when: 'it has no status yet', pod: {}, means: undefined },
  ])('when $when', ({ pod, means, waits }) => {
    const problem = podProblemOf(pod)
    expect(problem && [problem.code, problem.reason]).toEqual(means)
    if (!problem) return
    const patience = problem.patienceMs === 0 ? 'not' : Number.isFinite(problem.patienceMs) ? 'some' : 'all'
    expect(patience).toBe(waits)
  })

  it('the words are those of Kubernetes, with the container they are about', () => {
    const said = 'Back-off pulling image "registry.example/none:1"'
    expect(podProblemOf(waiting('ImagePullBackOff', said))?.message).toBe(`container sandbox: ${said}`)
    expect(podProblemOf(unscheduled)?.message).toContain('3 Too many pods')
    const lastState = { terminated: { exitCode: 7 } }
    const crashed: Pod = {
      status: { containerStatuses: [{ ...container, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState }] },
    }
    expect(podProblemOf(crashed)?.message).toBe('container sandbox: it ended with exit code 7')
  })
})

describe('the pod of a claim is read only while the task waits for it', () => {
  const condition = (type: string, status: 'True' | 'False' = 'True') => ({
    type,
    status,
    reason: 'x',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  })
  const task = (...types: string[]): AgentTask =>
    ({ spec: {}, status: { conditions: types.map((type) => condition(type)) } }) as AgentTask
  const claim = (ready?: 'True' | 'False'): SandboxClaim =>
    ({ status: { conditions: ready ? [condition('Ready', ready)] : [] } }) as SandboxClaim

  it.each([
    { when: 'the claim was just made', task: task('Admitted'), claim: claim(), is: true },
    { when: 'the claim is not ready', task: task('Admitted'), claim: claim('False'), is: true },
    { when: 'the claim is ready', task: task('Admitted'), claim: claim('True'), is: false },
    { when: 'the sandbox was recorded', task: task('Admitted', 'SandboxReady'), claim: claim('False'), is: false },
    { when: 'the task is not admitted', task: task(), claim: claim(), is: false },
    { when: 'the task ended', task: task('Admitted', 'Succeeded'), claim: claim(), is: false },
  ])('$is when $when', ({ task, claim, is }) => {
    expect(awaitsPod(task, claim)).toBe(is)
  })
})

describe('how long a task waits for a pod that does not start', () => {
  it.each([
    ['InvalidImageName', 'ImagePullFailed', 0],
    ['ErrImageNeverPull', 'ImagePullFailed', 0],
    ['ErrImagePull', 'ImagePullFailed', 90_000],
    ['ImagePullBackOff', 'ImagePullFailed', 90_000],
    ['ImageInspectError', 'ImagePullFailed', 90_000],
    ['CreateContainerConfigError', 'SandboxCannotStart', 90_000],
    ['CreateContainerError', 'SandboxCannotStart', 90_000],
    ['RunContainerError', 'SandboxCannotStart', 90_000],
    ['CrashLoopBackOff', 'SandboxCannotStart', 90_000],
  ])('%s: it ends with %s after %i ms', (reason, code, patienceMs) => {
    expect(podProblemOf(waiting(reason))).toEqual({ reason, message: `container sandbox: ${reason}`, code, patienceMs })
  })

  it('a scheduler that says nothing is told as one that has no node', () => {
    const conditions = [{ type: 'PodScheduled', status: 'False' as const }]
    expect(podProblemOf({ status: { conditions } })).toEqual({
      ...{ reason: 'Unschedulable', message: 'no node takes the pod', code: 'Unschedulable' },
      patienceMs: Number.POSITIVE_INFINITY,
    })
    const named = [{ type: 'PodScheduled', status: 'False' as const, reason: 'SchedulingGated', message: 'gated' }]
    expect(podProblemOf({ status: { conditions: named } })).toMatchObject({
      reason: 'SchedulingGated',
      message: 'gated',
    })
  })

  it('containers that prepare the pod are asked first, and those that run or say nothing are passed over', () => {
    const init = { ...container, name: 'init', state: { waiting: { reason: 'ErrImagePull' } } }
    const status = { initContainerStatuses: [init], ...waiting('CrashLoopBackOff').status }
    expect(podProblemOf({ status })?.message).toBe('container init: ErrImagePull')
    const quiet = [{ ...container, state: { running: {} } }, { ...container, state: { waiting: {} } }, container]
    expect(podProblemOf({ status: { containerStatuses: quiet } })).toBeUndefined()
    expect(podProblemOf({ status: { initContainerStatuses: [init] } })?.reason).toBe('ErrImagePull')
  })
})

describe('the pod of a claim that does not become ready', () => {
  type Client = Parameters<typeof findPodProblem>[0]
  const claim = (more: object = {}): Stored<SandboxClaim> => ({
    ...{ apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxClaim' },
    metadata: {
      ...{ name: 'task-a', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
      ...more,
    },
    spec: { warmPoolRef: { name: 'default' } },
    status: { conditions: [], ...('namespace' in more ? { sandbox: { name: 'box' } } : {}) },
  })
  const cluster = (objects: Record<string, object>): Client => ({
    find: async (_kind: unknown, { namespace, name }: { namespace?: string; name: string }) =>
      objects[`${namespace}/${name}`] as never,
  })

  it('is the one its sandbox names, or has the name of the claim', async () => {
    const pod = { metadata: { name: 'box' }, ...waiting('ErrImagePull') }
    expect(await findPodProblem(cluster({ 'corral/box': pod }), claim({ namespace: 'corral' }))).toMatchObject({
      reason: 'ErrImagePull',
    })
    const own = { ...pod, metadata: { name: 'task-a' } }
    expect(await findPodProblem(cluster({ 'default/task-a': own }), claim())).toMatchObject({ reason: 'ErrImagePull' })
  })

  it('explains nothing while it is not there or cannot be read', async () => {
    expect(await findPodProblem(cluster({}), claim())).toBeUndefined()
    const away = { find: () => Promise.reject(new Error('away')) } as unknown as Client
    expect(await findPodProblem(away, claim())).toBeUndefined()
  })
})
