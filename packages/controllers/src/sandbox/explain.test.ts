import type { PodStatus } from '@corral/resources'
import { expect, it } from 'vitest'
import { explainPod } from './explain.js'

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
    when: 'the node refused it',
    status: { phase: 'Pending', reason: 'OutOfmemory', message: 'node is full' },
    says: 'pod: OutOfmemory: node is full',
  },
])('explains why a Pod is not up when $when', ({ status, says }) => {
  expect(explainPod({ status })).toBe(says)
})
