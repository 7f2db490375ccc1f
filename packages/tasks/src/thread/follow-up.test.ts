import type { AgentTask, AgentTaskStatus, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { type Continuation, followUpOf } from './follow-up.js'

const condition = (type: string, status: 'True' | 'False', reason: string) => ({
  ...{ type, status, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
})
const ended = (status: AgentTaskStatus, spec: Partial<AgentTask['spec']> = {}): Stored<AgentTask> => ({
  apiVersion: 'corral.dev/v1alpha1',
  kind: 'AgentTask',
  metadata: { name: 'task-a', namespace: 'corral', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' } as never,
  spec: { repository: { url: '/r' }, prompt: 'first', agent: { name: 'claude' }, ...spec },
  status: { conditions: [condition('Succeeded', 'True', 'Succeeded')], ...status },
})
const pushed = { commit: 'c1', outcome: 'changes', pushed: true, baseCommit: 'c0', baseBranch: 'main' } as const
const before: Continuation = { task: 'task-0', uid: 'u0', thread: 'task-0', branch: 'corral/task-0', commit: 'c1' }

describe('the follow-up of a task', () => {
  it.each<{
    of: string
    task: Stored<AgentTask>
    isBranchFree?: boolean
    asks?: string
    isPushed?: false
    branch: string | undefined
    continues: Partial<Continuation>
  }>([
    {
      of: 'that was pushed goes on with its branch from its commit',
      task: ended(pushed),
      branch: 'corral/task-a',
      continues: {
        task: 'task-a',
        uid: 'u',
        thread: 'task-a',
        branch: 'corral/task-a',
        commit: 'c1',
        baseCommit: 'c0',
      },
    },
    {
      of: 'whose branch another follow-up has begins at the same commit on its own',
      task: ended(pushed),
      isBranchFree: false,
      branch: undefined,
      continues: { branch: 'corral/task-a', commit: 'c1' },
    },
    {
      of: 'may name another branch',
      task: ended(pushed),
      asks: 'mine',
      branch: 'mine',
      continues: { branch: 'corral/task-a', commit: 'c1' },
    },
    {
      of: 'that could not be pushed leaves the name it asked for alone',
      task: ended({ ...pushed, pushed: false }, { newBranch: 'taken' }),
      branch: undefined,
      isPushed: false,
      continues: { commit: 'c1' },
    },
    {
      of: 'that changed nothing takes the name that is still free, from the same base',
      task: ended({ outcome: 'no_changes', baseCommit: 'c0', baseBranch: 'main' }),
      branch: 'corral/task-a',
      isPushed: false,
      continues: { baseCommit: 'c0' },
    },
    {
      of: 'that changed nothing in a thread goes on with what the thread has',
      task: ended(
        { outcome: 'no_changes', baseCommit: 'c2', baseBranch: 'main' },
        { continues: before, newBranch: 'corral/task-0' },
      ),
      branch: 'corral/task-0',
      continues: { task: 'task-a', thread: 'task-0', branch: 'corral/task-0', commit: 'c2' },
    },
    {
      of: 'whose session is kept resumes it',
      task: ended({ ...pushed, session: { id: 's', sizeBytes: 1 } }),
      branch: 'corral/task-a',
      continues: { sessionId: 's' },
    },
  ])('$of', ({ task, isBranchFree = true, asks, branch, isPushed, continues }) => {
    const message = { task: 'next', ...(asks ? { new_branch: asks } : {}) }
    const followUp = followUpOf(task, message, { isBranchFree })
    expect(followUp.request.new_branch).toBe(branch)
    expect(followUp.request.task).toBe('next')
    expect(followUp.continues).toMatchObject(continues)
    if (isPushed === false) expect(followUp.continues.branch).toBeUndefined()
  })

  it('waits for the end of the task', () => {
    const running = ended({ conditions: [] })
    expect(() => followUpOf(running, { task: 'next' }, { isBranchFree: true })).toThrow(/has not ended yet/)
  })
})
