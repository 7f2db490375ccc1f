import type { PodSpec } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { type ContainerState, newContainerState, rolesOf } from '../records/container-state.js'
import { type PodAction, type PodWorld, planPod } from './plan.js'

const t0 = new Date('2026-01-01T00:00:00Z')
const at = (seconds: number): Date => new Date(t0.getTime() + seconds * 1000)
const iso = (seconds: number): string => at(seconds).toISOString()

const container = (name: string) => ({ name, image: 'x', command: ['true'] })
const one: PodSpec = { containers: [container('main')] }
const staged: PodSpec = {
  initContainers: [container('init'), { ...container('side'), restartPolicy: 'Always' }],
  containers: [container('main')],
}

const running: Partial<ContainerState> = { launched: 1, run: { startedAt: iso(0) }, started: true, ready: true }
const ended = (exitCode: number, crashes = 1, atSeconds = 0): Partial<ContainerState> => ({
  launched: crashes,
  crashes,
  exit: { attempt: crashes - 1, startedAt: iso(atSeconds), finishedAt: iso(atSeconds), exitCode, reason: 'Error' },
})

function world(spec: PodSpec, states: Record<string, Partial<ContainerState>>, rest: Partial<PodWorld> = {}): PodWorld {
  const entries = rolesOf(spec).map(
    ({ container: { name } }) => [name, { ...newContainerState(name), ...states[name] }] as const,
  )
  return { spec, containers: new Map(entries), startTime: iso(0), prepared: true, now: t0, ...rest }
}

const told = (action: PodAction): string => {
  switch (action.kind) {
    case 'start':
      return `start ${action.container}#${action.attempt}`
    case 'stop':
      return `stop ${action.container} ${action.graceSeconds}s ${action.cause}`
    case 'fail':
      return `fail ${action.reason}`
    default:
      return action.kind
  }
}

interface Row {
  when: string
  world: PodWorld
  does: string[]
  waitsSeconds?: number
}

describe('planPod', () => {
  it.each<Row>([
    { when: 'nothing is there yet', world: world(one, {}, { prepared: false }), does: ['prepare'] },
    { when: 'the network is there', world: world(one, {}), does: ['start main#0'] },
    { when: 'the container runs', world: world(one, { main: running }), does: [] },
    {
      when: 'two containers are new',
      world: world({ containers: [container('a'), container('b')] }, {}),
      does: ['start a#0', 'start b#0'],
    },

    { when: 'an init container comes first', world: world(staged, {}), does: ['start init#0'] },
    { when: 'an init container still runs', world: world(staged, { init: running }), does: [] },
    { when: 'the init container is done', world: world(staged, { init: ended(0) }), does: ['start side#0'] },
    {
      when: 'a sidecar runs but has not started up',
      world: world(staged, { init: ended(0), side: { ...running, started: false } }),
      does: [],
    },
    { when: 'the sidecar is up', world: world(staged, { init: ended(0), side: running }), does: ['start main#0'] },
    {
      when: 'a sidecar died beside the main container',
      world: world(staged, { init: ended(0), side: ended(1), main: running }),
      does: ['start side#1'],
    },
    {
      when: 'an init container failed where nothing restarts it',
      world: world({ ...staged, restartPolicy: 'Never' }, { init: ended(1) }),
      does: ['release'],
    },
    {
      when: 'an init container failed and may try again',
      world: world({ ...staged, restartPolicy: 'OnFailure' }, { init: ended(1) }),
      does: ['start init#1'],
    },

    { when: 'it ended well under Always', world: world(one, { main: ended(0) }), does: ['start main#1'] },
    {
      when: 'it ended well under OnFailure',
      world: world({ ...one, restartPolicy: 'OnFailure' }, { main: ended(0) }),
      does: ['release'],
    },
    {
      when: 'it failed under OnFailure',
      world: world({ ...one, restartPolicy: 'OnFailure' }, { main: ended(1) }),
      does: ['start main#1'],
    },
    {
      when: 'it failed under Never',
      world: world({ ...one, restartPolicy: 'Never' }, { main: ended(1) }),
      does: ['release'],
    },
    { when: 'it crashed twice', world: world(one, { main: ended(1, 2) }), does: [], waitsSeconds: 10 },
    {
      when: 'it crashed three times, 15 s ago',
      world: world(one, { main: ended(1, 3) }, { now: at(15) }),
      does: [],
      waitsSeconds: 5,
    },
    { when: 'its back-off is over', world: world(one, { main: ended(1, 2) }, { now: at(10) }), does: ['start main#2'] },
    { when: 'it crashed very often', world: world(one, { main: ended(1, 20) }), does: [], waitsSeconds: 300 },
    {
      when: 'it waits for something that is missing',
      world: world(one, { main: { waiting: { reason: 'x', message: '', retryAt: iso(2), tries: 1 } } }),
      does: [],
      waitsSeconds: 2,
    },

    {
      when: 'a probe gave up on it',
      world: world(one, { main: { ...running, unhealthy: { message: '' } } }),
      does: ['stop main 30s Unhealthy'],
    },
    {
      when: 'the probe has a grace period of its own',
      world: world(one, { main: { ...running, unhealthy: { message: '', graceSeconds: 3 } } }),
      does: ['stop main 3s Unhealthy'],
    },
    {
      when: 'it is already being stopped',
      world: world(one, {
        main: { ...running, unhealthy: { message: '' }, stopping: { cause: 'Unhealthy', deadline: iso(30) } },
      }),
      does: [],
    },

    {
      when: 'its deadline lies ahead',
      world: world({ ...one, activeDeadlineSeconds: 60 }, { main: running }, { now: at(20) }),
      does: [],
      waitsSeconds: 40,
    },
    {
      when: 'its deadline has passed',
      world: world({ ...one, activeDeadlineSeconds: 60 }, { main: running }, { now: at(60) }),
      does: ['fail DeadlineExceeded'],
    },
    {
      when: 'its deadline passed after it had ended',
      world: world(
        { ...one, restartPolicy: 'Never', activeDeadlineSeconds: 60 },
        { main: ended(0) },
        { now: at(90), prepared: false },
      ),
      does: [],
    },
    {
      when: 'it has failed as a whole',
      world: world(one, { main: running }, { failure: { reason: 'DeadlineExceeded', message: '' } }),
      does: ['stop main 30s PodFailed'],
    },
    {
      when: 'it is evicted',
      world: world(one, { main: running }, { failure: { reason: 'Evicted', message: '' } }),
      does: ['stop main 0s PodFailed'],
    },
    {
      when: 'it was refused before anything was made',
      world: world(one, {}, { prepared: false, failure: { reason: 'UnsupportedField', message: '' } }),
      does: [],
    },

    {
      when: 'its work is over but a sidecar runs',
      world: world({ ...staged, restartPolicy: 'Never' }, { init: ended(0), side: running, main: ended(0) }),
      does: ['stop side 30s PodFinished'],
    },
    {
      when: 'it is deleted',
      world: world(one, { main: running }, { deletion: { graceSeconds: 5, objectGone: false } }),
      does: ['stop main 5s PodDeleted'],
    },
    {
      when: 'it is deleted and main and sidecar run',
      world: world(
        staged,
        { init: ended(0), side: running, main: running },
        { deletion: { graceSeconds: 5, objectGone: false } },
      ),
      does: ['stop main 5s PodDeleted'],
    },
    {
      when: 'a second deletion is in a hurry',
      world: world(
        one,
        { main: { ...running, stopping: { cause: 'PodDeleted', deadline: iso(30) } } },
        { deletion: { graceSeconds: 1, objectGone: false } },
      ),
      does: ['stop main 1s PodDeleted'],
    },
    {
      when: 'a second deletion is slower',
      world: world(
        one,
        { main: { ...running, stopping: { cause: 'PodDeleted', deadline: iso(1) } } },
        { deletion: { graceSeconds: 30, objectGone: false } },
      ),
      does: [],
    },
    {
      when: 'everything has ended on deletion',
      world: world(one, { main: ended(0) }, { deletion: { graceSeconds: 5, objectGone: false } }),
      does: ['release'],
    },
    {
      when: 'nothing is left on deletion',
      world: world(one, { main: ended(0) }, { prepared: false, deletion: { graceSeconds: 5, objectGone: false } }),
      does: ['deleteObject'],
    },
    {
      when: 'the object is gone and a container runs',
      world: world(one, { main: running }, { deletion: { graceSeconds: 0, objectGone: true } }),
      does: ['stop main 0s PodDeleted'],
    },
    {
      when: 'the object is gone and nothing is left',
      world: world(one, {}, { prepared: false, deletion: { graceSeconds: 0, objectGone: true } }),
      does: [],
    },
  ])('when $when', ({ world: given, does, waitsSeconds }) => {
    const decision = planPod(given)
    expect(decision.actions.map(told)).toEqual(does)
    expect(decision.requeueAfterMs).toBe(waitsSeconds === undefined ? undefined : waitsSeconds * 1000)
  })

  it('rests once everything it asked for is done', () => {
    expect(planPod(world(staged, { init: ended(0), side: running, main: running }))).toEqual({ actions: [] })
  })
})
