import type { TaskEventBody } from '@corral/protocol'
import { expect, it } from 'vitest'
import { eventsOf } from './action-events.js'
import type { StepName, TaskAction } from './plan.js'

const sandbox = (state: string, detail: string): TaskEventBody =>
  ({ type: 'stage', stage: 'sandbox', state, detail }) as TaskEventBody

it.each<{ action: TaskAction; told: TaskEventBody[] }>([
  {
    action: { kind: 'record', condition: 'SandboxReady', reason: 'ClaimReady', message: 'sandbox s-1' },
    told: [sandbox('finished', 'sandbox s-1')],
  },
  { action: { kind: 'record', condition: 'Admitted', reason: 'Scheduled', message: 'a place was free' }, told: [] },
  {
    action: { kind: 'recordWaiting', reason: 'ImagePullBackOff', message: 'container a: not found' },
    told: [sandbox('progress', 'ImagePullBackOff: container a: not found')],
  },
  {
    action: { kind: 'startAgain', attempt: 2, message: 'the pod failed' },
    told: [sandbox('failed', 'the pod failed; trying again with another one (2 of 3)')],
  },
  { action: { kind: 'announceAgent' }, told: [] },
  { action: { kind: 'finish', ending: { code: 'Succeeded', message: '' } }, told: [] },
])('the log of the task says of $action.kind: $told', ({ action, told }) => {
  expect(eventsOf(action)).toEqual(told)
})

it.each<[StepName, string | undefined]>([
  ['repository', 'repository'],
  ['setup', 'setup'],
  ['start-agent', undefined],
  ['follow-agent', undefined],
  ['stop-agent', undefined],
  ['check', 'checks'],
  ['repair', undefined],
  ['stop-checks', undefined],
  ['collect', 'result'],
  ['push', 'push'],
  ['take-over', 'result'],
  ['salvage', 'result'],
  ['suspend', undefined],
])('the start of step %s is told as stage %s', (step, stage) => {
  expect(eventsOf({ kind: 'runStep', step })).toEqual(stage ? [{ type: 'stage', stage, state: 'started' }] : [])
})

it('a long reason is cut, so that the log takes it', () => {
  const [event] = eventsOf({ kind: 'recordWaiting', reason: 'r', message: 'x'.repeat(9_000) })
  expect(event).toMatchObject({ detail: expect.stringMatching(/^r: x{1997}$/) })
})
