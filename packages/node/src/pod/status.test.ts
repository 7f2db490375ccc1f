import type { Pod, PodSpec } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { type ContainerState, newContainerState, rolesOf } from '../records/container-state.js'
import { podStatus, type StatusInput } from './status.js'

const now = new Date('2026-01-01T00:01:00.500Z')
const begun = '2026-01-01T00:00:00.250Z'
const container = (name: string) => ({ name, image: 'x:1', command: ['true'] })
const running: Partial<ContainerState> = { launched: 1, run: { startedAt: begun }, started: true, ready: true }
const ended = (exitCode: number, crashes = 1, reason = 'Error'): Partial<ContainerState> => ({
  launched: crashes,
  crashes,
  exit: { attempt: crashes - 1, startedAt: begun, finishedAt: begun, exitCode, reason },
})

function input(
  spec: Partial<PodSpec>,
  states: Record<string, Partial<ContainerState>>,
  rest: Partial<StatusInput> = {},
): StatusInput {
  const pod: Pod = {
    metadata: { name: 'p', namespace: 'ns', uid: 'u', generation: 2 },
    spec: { containers: [container('main')], ...spec },
    ...rest.pod,
  }
  const entries = rolesOf(pod.spec!).map(
    ({ container: { name } }) => [name, { ...newContainerState(name), ...states[name] }] as const,
  )
  return {
    containers: new Map(entries),
    startTime: begun,
    podIP: '100.64.0.2',
    hostIP: '127.0.0.1',
    prepared: true,
    isEnding: false,
    now,
    ...rest,
    pod,
  }
}

const facts = (given: StatusInput): string => {
  const status = podStatus(given)
  const truths = status.conditions?.map(
    ({ type, status: value, reason }) => `${type}=${value}${reason ? `(${reason})` : ''}`,
  )
  return [status.phase, ...(truths ?? [])].join(' ')
}

describe('podStatus', () => {
  it.each<{ when: string; given: StatusInput; says: string }>([
    {
      when: 'nothing has started',
      given: input({}, {}, { prepared: false }),
      says: 'Pending PodReadyToStartContainers=False Initialized=True Ready=False(ContainersNotReady) ContainersReady=False(ContainersNotReady) PodScheduled=True',
    },
    {
      when: 'an init container runs',
      given: input({ initContainers: [container('init')] }, { init: running }),
      says: 'Pending PodReadyToStartContainers=True Initialized=False(ContainersNotInitialized) Ready=False(ContainersNotReady) ContainersReady=False(ContainersNotReady) PodScheduled=True',
    },
    {
      when: 'the container runs and is ready',
      given: input({}, { main: running }),
      says: 'Running PodReadyToStartContainers=True Initialized=True Ready=True ContainersReady=True PodScheduled=True',
    },
    {
      when: 'the readiness probe has not answered',
      given: input({}, { main: { ...running, ready: false } }),
      says: 'Running PodReadyToStartContainers=True Initialized=True Ready=False(ContainersNotReady) ContainersReady=False(ContainersNotReady) PodScheduled=True',
    },
    {
      when: 'a readiness gate is closed',
      given: input({ readinessGates: [{ conditionType: 'corral.dev/gate' }] }, { main: running }),
      says: 'Running PodReadyToStartContainers=True Initialized=True Ready=False(ReadinessGatesNotReady) ContainersReady=True PodScheduled=True',
    },
    {
      when: 'it ended well and stays ended',
      given: input({ restartPolicy: 'Never' }, { main: ended(0, 1, 'Completed') }, { prepared: false }),
      says: 'Succeeded PodReadyToStartContainers=False Initialized=True(PodCompleted) Ready=False(PodCompleted) ContainersReady=False(PodCompleted) PodScheduled=True',
    },
    {
      when: 'it failed and stays ended',
      given: input({ restartPolicy: 'Never' }, { main: ended(1) }, { prepared: false }),
      says: 'Failed PodReadyToStartContainers=False Initialized=True Ready=False(PodFailed) ContainersReady=False(PodFailed) PodScheduled=True',
    },
    {
      when: 'it backs off between runs',
      given: input({}, { main: ended(1, 2) }),
      says: 'Running PodReadyToStartContainers=True Initialized=True Ready=False(ContainersNotReady) ContainersReady=False(ContainersNotReady) PodScheduled=True',
    },
    {
      when: 'one of two containers has not started',
      given: input({ containers: [container('main'), container('other')] }, { main: running }),
      says: 'Pending PodReadyToStartContainers=True Initialized=True Ready=False(ContainersNotReady) ContainersReady=False(ContainersNotReady) PodScheduled=True',
    },
    {
      when: 'it was refused',
      given: input({}, {}, { prepared: false, failure: { reason: 'UnsupportedField', message: 'm' } }),
      says: 'Failed PodReadyToStartContainers=False Initialized=True Ready=False(PodFailed) ContainersReady=False(PodFailed) PodScheduled=True',
    },
    {
      when: 'it was deleted while it ran under Always',
      given: input({}, { main: ended(143) }, { isEnding: true, prepared: false }),
      says: 'Failed PodReadyToStartContainers=False Initialized=True Ready=False(PodFailed) ContainersReady=False(PodFailed) PodScheduled=True',
    },
  ])('when $when', ({ given, says }) => {
    expect(facts(given)).toBe(says)
  })

  it.each<{ when: string; given: StatusInput; shows: object }>([
    {
      when: 'waiting for the first start',
      given: input({}, {}),
      shows: { state: { waiting: { reason: 'ContainerCreating' } }, lastState: {}, restartCount: 0, started: false },
    },
    {
      when: 'waiting behind init containers',
      given: input({ initContainers: [container('i')] }, { i: running }),
      shows: { state: { waiting: { reason: 'PodInitializing' } } },
    },
    {
      when: 'running again after a crash',
      given: input({}, { main: { ...ended(1), ...running, launched: 2 } }),
      shows: {
        restartCount: 1,
        ready: true,
        containerID: 'corral://u/main/1',
        state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
        lastState: { terminated: { exitCode: 1, reason: 'Error', containerID: 'corral://u/main/0' } },
      },
    },
    {
      when: 'backing off',
      given: input({}, { main: ended(1, 5) }),
      shows: {
        restartCount: 4,
        state: {
          waiting: {
            reason: 'CrashLoopBackOff',
            message: 'back-off 1m20s restarting failed container=main pod=p_ns(u)',
          },
        },
        lastState: { terminated: { exitCode: 1 } },
      },
    },
    {
      when: 'ended by the kernel for its memory',
      given: input({ restartPolicy: 'Never' }, { main: ended(137, 1, 'OOMKilled') }),
      shows: {
        state: { terminated: { exitCode: 137, reason: 'OOMKilled', finishedAt: '2026-01-01T00:00:00Z' } },
        lastState: {},
      },
    },
    {
      when: 'missing its configuration',
      given: input(
        {},
        { main: { waiting: { reason: 'CreateContainerConfigError', message: 'no', retryAt: begun, tries: 1 } } },
      ),
      shows: { state: { waiting: { reason: 'CreateContainerConfigError', message: 'no' } } },
    },
  ])('shows a container $when', ({ given, shows }) => {
    expect(podStatus(given).containerStatuses?.[0]).toMatchObject(shows)
  })

  it('keeps the conditions of others and the times of its own that did not change', () => {
    const earlier = '2025-12-31T00:00:00Z'
    const foreign = { type: 'corral.dev/gate', status: 'True', lastTransitionTime: earlier }
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: earlier }, foreign]
    const base = input({}, { main: running })
    const status = podStatus({ ...base, pod: { ...base.pod, status: { conditions } } })
    expect(status.conditions).toContainEqual(foreign)
    expect(status.conditions?.find((entry) => entry.type === 'Ready')?.lastTransitionTime).toBe(earlier)
    expect(status.conditions?.find((entry) => entry.type === 'Initialized')?.lastTransitionTime).toBe(
      '2026-01-01T00:01:00Z',
    )
  })

  it('names no address before anything ran', () => {
    expect(podStatus(input({}, {})).podIP).toBeUndefined()
    expect(podStatus(input({}, { main: running }))).toMatchObject({
      podIP: '100.64.0.2',
      podIPs: [{ ip: '100.64.0.2' }],
      startTime: '2026-01-01T00:00:00Z',
      observedGeneration: 2,
    })
  })
})
