import type { ContainerStatus, Pod } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { type ContainerState, newContainerState } from '../records/container-state.js'
import type { PodRecord } from '../records/pod-directories.js'
import { recoverContainers } from './recovered-state.js'

const now = new Date('2026-01-01T00:10:00Z')
const begun = '2026-01-01T00:00:00Z'
const podWith = (status?: Partial<ContainerStatus>): Pod => ({
  metadata: { name: 'p', uid: 'u' },
  spec: { containers: [{ name: 'c', image: 'x' }] },
  ...(status
    ? {
        status: {
          containerStatuses: [{ name: 'c', image: 'x', imageID: '', ready: false, restartCount: 0, ...status }],
        },
      }
    : {}),
})
const recordWith = (state: Partial<ContainerState>): PodRecord => ({
  podUid: 'u',
  namespace: 'ns',
  name: 'p',
  hostUid: 200_000,
  podIP: '100.64.0.2',
  startTime: begun,
  containers: [{ ...newContainerState('c'), ...state }],
})
const running = { launched: 1, run: { startedAt: begun }, started: true, ready: true }
const lost = { exitCode: 137, reason: 'ContainerStatusUnknown', finishedAt: now.toISOString() }

describe('recoverContainers', () => {
  it.each<{ when: string; pod: Pod; record?: PodRecord; hasCell?: boolean; is: object }>([
    { when: 'the pod is new', pod: podWith(), is: { launched: 0, crashes: 0 } },
    { when: 'its cell goes on', pod: podWith(), record: recordWith(running), hasCell: true, is: running },
    {
      when: 'its cell is gone',
      pod: podWith(),
      record: recordWith(running),
      is: { launched: 1, run: undefined, exit: lost, ready: false, crashes: 0 },
    },
    {
      when: 'it was being stopped',
      pod: podWith(),
      record: recordWith({ ...running, stopping: { cause: 'PodDeleted', deadline: begun } }),
      hasCell: true,
      is: { ...running, stopping: undefined },
    },
    {
      when: 'the record is gone and the status says it ran',
      pod: podWith({ containerID: 'corral://u/c/2', restartCount: 2, state: { running: { startedAt: begun } } }),
      is: { launched: 3, run: undefined, exit: { ...lost, attempt: 2 } },
    },
    {
      when: 'the record is gone and the status says it ended',
      pod: podWith({
        containerID: 'corral://u/c/0',
        state: { terminated: { exitCode: 3, reason: 'Error', startedAt: begun, finishedAt: begun } },
      }),
      is: { launched: 1, exit: { exitCode: 3, reason: 'Error' } },
    },
    {
      when: 'the record is gone and the status says it backs off',
      pod: podWith({
        containerID: 'corral://u/c/1',
        restartCount: 1,
        state: { waiting: { reason: 'CrashLoopBackOff' } },
        lastState: { terminated: { exitCode: 1, startedAt: begun, finishedAt: begun } },
      }),
      is: { launched: 2, exit: { exitCode: 1 }, crashes: 1 },
    },
  ])('when $when', ({ pod, record, hasCell = false, is }) => {
    const state = recoverContainers(pod, record, () => hasCell, now).get('c')
    expect(state).toMatchObject(Object.fromEntries(Object.entries(is).filter(([, value]) => value !== undefined)))
    for (const [key, value] of Object.entries(is)) if (value === undefined) expect(state).not.toHaveProperty(key)
  })
})
