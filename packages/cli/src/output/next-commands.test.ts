import type { TaskView } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { nextCommands } from './next-commands.js'

const task: TaskView = {
  id: 'task-1',
  status: 'SUCCEEDED',
  repo: '/my code/app',
  task: 'x',
  agent: { name: 'command' },
  timeout_seconds: 60,
  created_at: '2026-01-01T00:00:00Z',
}
const commands = (view: Partial<TaskView>, dataDir?: string, hasWorkTree = true): (string | undefined)[] =>
  nextCommands({ ...task, ...view }, dataDir, () => hasWorkTree).map((line) => line.split('  #')[0]?.trim())

describe('what comes after a task', () => {
  it.each([
    {
      when: 'its branch is in a work tree',
      view: { pushed: true, branch: 'corral/task-1' },
      says: [
        'next:',
        'corral task diff task-1',
        "git -C '/my code/app' checkout corral/task-1",
        "git -C '/my code/app' merge corral/task-1",
        'corral task send task-1 "…"',
      ],
    },
    { when: 'nothing changed', view: { outcome: 'no_changes' as const }, says: [] },
    {
      when: 'the agent failed without a branch',
      view: { status: 'FAILED' as const, cause: { code: 'AgentFailed', message: 'm' }, times: { running_at: 'x' } },
      says: ['next:', 'corral task logs task-1', 'corral task retry task-1'],
    },
    {
      when: 'its work was refused by the remote, and is kept',
      view: {
        status: 'FAILED' as const,
        commit: 'c',
        cause: { code: 'PushRefused', message: 'm' },
        times: { running_at: 'x' },
      },
      says: ['next:', 'corral task diff task-1', 'corral task apply task-1', 'corral task logs task-1'],
    },
    {
      when: 'it could never have worked',
      view: { status: 'FAILED' as const, cause: { code: 'BranchNotFound', message: 'm' } },
      says: [],
    },
  ])('when $when', ({ view, says }) => {
    expect(commands(view)).toEqual(says)
  })

  it('leads to the data directory that was named', () => {
    expect(commands({ pushed: true, branch: 'b' }, '/my data')[1]).toBe("corral task diff task-1 --data-dir '/my data'")
  })

  it('checks nothing out of a bare repository', () => {
    expect(commands({ pushed: true, branch: 'b' }, undefined, false).join(' ')).not.toContain('checkout')
  })
})
