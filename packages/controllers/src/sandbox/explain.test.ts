import type { PodStatus } from '@corral/resources'
import { expect, it } from 'vitest'
import { explainPod } from './explain.js'

const main = { name: 'main', image: 'x', imageID: '', ready: false, restartCount: 0 }

it.each<{ when: string; status: PodStatus; says: string | undefined }>([
  {
    when: 'the image cannot be pulled',
    status: {
      containerStatuses: [
        {
          name: 'main',
          image: 'x',
          imageID: '',
          ready: false,
          restartCount: 0,
          state: { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } },
        },
      ],
    },
    says: 'container "main": ImagePullBackOff: no such image',
  },
  {
    when: 'no node fits',
    status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' }] },
    says: 'not scheduled: Unschedulable: 0/1 nodes',
  },
  {
    when: 'it ran out of memory',
    status: {
      containerStatuses: [
        {
          name: 'main',
          image: 'x',
          imageID: '',
          ready: false,
          restartCount: 2,
          state: { waiting: { reason: 'CrashLoopBackOff' } },
          lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } },
        },
      ],
    },
    says: 'container "main" was ended because it ran out of memory (restarts: 2)',
  },
  {
    when: 'it keeps crashing',
    status: {
      containerStatuses: [
        {
          name: 'main',
          image: 'x',
          imageID: '',
          ready: false,
          restartCount: 2,
          state: { waiting: { reason: 'CrashLoopBackOff' } },
          lastState: { terminated: { exitCode: 3 } },
        },
      ],
    },
    says: 'container "main": CrashLoopBackOff: last exit code 3',
  },
  {
    when: 'it is on its way',
    status: {
      containerStatuses: [
        {
          name: 'main',
          image: 'x',
          imageID: '',
          ready: false,
          restartCount: 0,
          state: { waiting: { reason: 'ContainerCreating' } },
        },
      ],
    },
    says: undefined,
  },
  {
    when: 'it ended with an error and a word',
    status: {
      containerStatuses: [{ ...main, state: { terminated: { exitCode: 3, reason: 'Oh', message: ' why ' } } }],
    },
    says: 'container "main": Oh: why',
  },
  {
    when: 'it ended with an error without one',
    status: { containerStatuses: [{ ...main, state: { terminated: { exitCode: 3 } } }] },
    says: 'container "main": Error: exit code 3',
  },
  {
    when: 'it ended for want of memory',
    status: { containerStatuses: [{ ...main, state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }] },
    says: 'container "main" was ended because it ran out of memory',
  },
  {
    when: 'it ended well',
    status: { containerStatuses: [{ ...main, state: { terminated: { exitCode: 0, reason: 'Completed' } } }] },
    says: undefined,
  },
  {
    when: 'another condition is false',
    status: { conditions: [{ type: 'Ready', status: 'False', reason: 'ContainersNotReady' }] },
    says: undefined,
  },
  {
    when: 'it is scheduled',
    status: { conditions: [{ type: 'PodScheduled', status: 'True', reason: 'x' }] },
    says: undefined,
  },
  {
    when: 'no node fits, without a word',
    status: { conditions: [{ type: 'PodScheduled', status: 'False' }] },
    says: 'not scheduled: no reason given',
  },
  {
    when: 'a container that prepares it fails',
    status: { initContainerStatuses: [{ ...main, name: 'init', state: { waiting: { reason: 'ErrImagePull' } } }] },
    says: 'container "init": ErrImagePull',
  },
  { when: 'the node refused it with a message alone', status: { message: 'full' }, says: 'pod: full' },
  { when: 'it has no status', status: {}, says: undefined },
  {
    when: 'the node refused it',
    status: { phase: 'Pending', reason: 'OutOfmemory', message: 'node is full' },
    says: 'pod: OutOfmemory: node is full',
  },
])('explains why a Pod is not up when $when', ({ status, says }) => {
  expect(explainPod({ status })).toBe(says)
})

it('explains nothing of a Pod without a status, and a thousand characters of one that says more', () => {
  expect(explainPod({})).toBeUndefined()
  expect(explainPod({ status: { message: 'x'.repeat(2_000) } })).toHaveLength(1_000)
})
