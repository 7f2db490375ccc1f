import type { TaskView } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { type FollowUpSituation, offersFollowUp } from './ask-follow-up.js'

const ended: TaskView = {
  id: 'task-1',
  status: 'SUCCEEDED',
  repo: '/app',
  task: 'x',
  agent: { name: 'command' },
  base_commit: 'a'.repeat(40),
  timeout_seconds: 60,
  created_at: '2026-01-01T00:00:00Z',
}

describe('a follow-up is asked for', () => {
  it.each<{ when: string; task?: Partial<TaskView>; situation?: Partial<FollowUpSituation>; asks: boolean }>([
    { when: 'the task ended well in front of somebody', asks: true },
    { when: 'its agent failed', task: { status: 'FAILED' }, asks: true },
    { when: 'the user cancelled it', task: { status: 'CANCELLED' }, asks: false },
    { when: 'it never got as far as the repository', task: { base_commit: undefined }, asks: false },
    { when: 'the output goes to a file', situation: { isTerminal: false }, asks: false },
    { when: 'a program reads the output', situation: { json: true }, asks: false },
    { when: 'the user wants one task only', situation: { once: true }, asks: false },
    { when: 'a pipeline runs it', situation: { ci: 'true' }, asks: false },
  ])('$asks when $when', ({ task, situation, asks }) => {
    expect(offersFollowUp({ ...ended, ...task }, { isTerminal: true, ...situation })).toBe(asks)
  })
})
