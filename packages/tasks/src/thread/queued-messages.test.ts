import type { AgentTask, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { planTask } from '../agent-task/plan.js'
import { taskFinalizer } from '../task-state/task-marks.js'
import { joinedMessages, needsFollowUp, queuedFollowUpAnnotation, withMessage } from './queued-messages.js'

const now = new Date('2026-01-01T00:00:00Z')
const messages = [{ id: 'm1', text: 'also this', at: now.toISOString() }]
const task = (
  ended: string | undefined,
  spec: Partial<AgentTask['spec']> = {},
  metadata: object = {},
): Stored<AgentTask> => ({
  apiVersion: 'corral.dev/v1alpha1',
  kind: 'AgentTask',
  metadata: { name: 'task-a', uid: 'u', finalizers: [taskFinalizer], ...metadata } as never,
  spec: { repository: { url: '/r' }, prompt: 'first', agent: { name: 'command' }, ...spec },
  status: {
    conditions: ended
      ? [
          {
            ...{ type: 'Succeeded', status: ended === 'Succeeded' ? 'True' : 'False', reason: ended, message: '' },
            lastTransitionTime: now.toISOString(),
          },
        ]
      : [],
  },
})

describe('messages that wait become a follow-up', () => {
  it.each<{ when: string; task: Stored<AgentTask>; needs: boolean }>([
    { when: 'the task ended well', task: task('Succeeded', { messages }), needs: true },
    { when: 'the agent failed', task: task('AgentFailed', { messages }), needs: true },
    { when: 'it still runs', task: task(undefined, { messages }), needs: false },
    { when: 'there are none', task: task('Succeeded'), needs: false },
    { when: 'it was cancelled', task: task('Cancelled', { messages }), needs: false },
    {
      when: 'it is being deleted',
      task: task('Succeeded', { messages }, { deletionTimestamp: now.toISOString() }),
      needs: false,
    },
    {
      when: 'they already did',
      task: task('Succeeded', { messages }, { annotations: { [queuedFollowUpAnnotation]: 'task-b' } }),
      needs: false,
    },
  ])('$needs when $when', ({ task: each, needs }) => {
    expect(needsFollowUp(each)).toBe(needs)
    const { actions } = planTask({ task: each, claim: undefined, step: undefined, mayStart: false, now })
    expect(actions.some(({ kind }) => kind === 'continueThread')).toBe(needs)
  })

  it('as one message, in their order', () => {
    const two = withMessage(task(undefined, { messages }), { task: 'and that', mode: 'plan' }, { id: 'm2', now })
    expect(joinedMessages(task('Succeeded', { messages: two }))).toEqual({
      task: 'also this\n\nand that',
      mode: 'plan',
    })
  })
})

describe('a message to a task that runs', () => {
  it('is queued once under the same id', () => {
    expect(withMessage(task(undefined, { messages }), { task: 'again' }, { id: 'm1', now })).toEqual(messages)
  })

  it.each([
    { to: 'one that is being cancelled', spec: { cancelRequested: true }, code: 'TaskFinished' },
    {
      to: 'one with too many already',
      spec: { messages: Array.from({ length: 20 }, (_, index) => ({ id: `${index}`, text: 'x', at: '' })) },
      code: 'TooManyRequests',
    },
  ])('is refused to $to', ({ spec, code }) => {
    expect(() => withMessage(task(undefined, spec), { task: 'more' }, { id: 'n', now })).toThrow(
      expect.objectContaining({ code }),
    )
  })
})
