import type { RetryTaskRequest } from '@corral/protocol'
import type { AgentTask, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { retryOf } from './task-retry.js'

type Reached = Record<string, string>
/** The conditions of a task that ended: what passed with its reason, `!` before one that failed. */
function ended(reached: Reached, status: Partial<NonNullable<AgentTask['status']>> = {}, spec = {}): Stored<AgentTask> {
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: { name: 'task-a', uid: 'uid-a', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { repository: { url: '/repo' }, prompt: 'do it', agent: { name: 'command', command: 'true' }, ...spec },
    status: {
      conditions: Object.entries(reached).map(([type, reason]) => ({
        type,
        status: reason.startsWith('!') ? 'False' : 'True',
        reason: reason.replace('!', ''),
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      })),
      ...status,
    },
  }
}

const base = { baseCommit: 'base', baseBranch: 'main' }
const result = { ...base, outcome: 'changes', commit: 'work' } as const
const collected = { AgentFinished: 'Completed', ResultCollected: 'Accepted' }
const pushFailed = ended({ ...collected, Pushed: '!PushFailed', Succeeded: '!PushFailed' }, result)
const noClone = ended({ RepositoryReady: '!CloneFailed', Succeeded: '!CloneFailed' })
const setupFailed = ended({ SetupDone: '!SetupFailed', Succeeded: '!SetupFailed' }, base)
const agentFailed = ended(
  { AgentFinished: 'AgentFailed', ResultCollected: 'Accepted', Pushed: 'Pushed', Succeeded: '!AgentFailed' },
  { ...result, pushed: true },
)
const lost = ended(
  { AgentFinished: 'SandboxLost', ResultCollected: 'FromCheckpoint', Pushed: 'Pushed', Succeeded: '!SandboxLost' },
  { ...result, outcome: 'partial', pushed: true },
)

describe('where a retry begins', () => {
  it.each<{ when: string; task: Stored<AgentTask>; wanted?: RetryTaskRequest; spec: object; branch?: string }>([
    {
      when: 'the push failed',
      task: pushFailed,
      spec: { from: 'push', uid: 'uid-a', baseCommit: 'base', commit: 'work', replaces: ['work'] },
      branch: 'corral/task-a',
    },
    {
      when: 'the push failed and another branch is named',
      task: pushFailed,
      wanted: { new_branch: 'free' },
      spec: { from: 'push', uid: 'uid-a', baseCommit: 'base', commit: 'work', replaces: ['work'] },
      branch: 'free',
    },
    {
      when: 'the push failed and the agent shall run again',
      task: pushFailed,
      wanted: { from: 'agent' },
      spec: { from: 'agent', uid: 'uid-a', baseCommit: 'base', replaces: ['work'] },
    },
    {
      when: 'it was cancelled while its remote was away',
      task: ended({ ...collected, Succeeded: '!Cancelled' }, result),
      spec: { from: 'push', uid: 'uid-a', baseCommit: 'base', commit: 'work', replaces: ['work'] },
      branch: 'corral/task-a',
    },
    {
      when: 'the retry of a push failed that took over the work of an agent that was cut short',
      task: ended(
        { ResultCollected: 'Accepted', Pushed: '!PushFailed', Succeeded: '!PushFailed' },
        { ...result, outcome: 'partial' },
        { retry: { from: 'push', uid: 'uid-0', partial: true } },
      ),
      wanted: { from: 'push' },
      spec: { from: 'push', uid: 'uid-a', baseCommit: 'base', commit: 'work', partial: true, replaces: ['work'] },
      branch: 'corral/task-a',
    },
    {
      when: 'the retry of a push failed that took over whole work',
      task: ended({ ResultCollected: 'Accepted', Pushed: '!PushFailed', Succeeded: '!PushFailed' }, result, {
        retry: { from: 'push', uid: 'uid-0' },
      }),
      spec: { from: 'push', uid: 'uid-a', baseCommit: 'base', commit: 'work', replaces: ['work'] },
      branch: 'corral/task-a',
    },
    {
      when: 'it changed something and its commit was not recorded',
      task: ended({ ...collected, Succeeded: '!InternalError' }, { ...base, outcome: 'changes' }),
      spec: { from: 'agent', uid: 'uid-a', baseCommit: 'base' },
    },
    { when: 'the clone failed', task: noClone, spec: { from: 'start', uid: 'uid-a' } },
    { when: 'set-up failed', task: setupFailed, spec: { from: 'agent', uid: 'uid-a', baseCommit: 'base' } },
    {
      when: 'the agent failed, and what it left was pushed',
      task: agentFailed,
      spec: { from: 'agent', uid: 'uid-a', baseCommit: 'base', replaces: ['work'] },
    },
    {
      when: 'the agent failed, and the next one shall go on from there',
      task: agentFailed,
      wanted: { keep_work: true },
      spec: { from: 'agent', uid: 'uid-a', baseCommit: 'base', commit: 'work', partial: true, replaces: ['work'] },
    },
    {
      when: 'the sandbox was lost: the agent goes on from the checkpoint',
      task: lost,
      spec: { from: 'agent', uid: 'uid-a', baseCommit: 'base', commit: 'work', partial: true, replaces: ['work'] },
    },
    {
      when: 'the sandbox was lost and the agent shall begin anew',
      task: lost,
      wanted: { keep_work: false },
      spec: { from: 'agent', uid: 'uid-a', baseCommit: 'base', replaces: ['work'] },
    },
    {
      when: 'it succeeded',
      task: ended({ ...collected, Pushed: 'Pushed', Succeeded: 'Succeeded' }, { ...result, pushed: true }),
      spec: { from: 'start', uid: 'uid-a', replaces: ['work'] },
    },
    {
      when: 'it is a retry itself that failed to push',
      task: ended({ ResultCollected: 'TakenOver', Pushed: '!PushFailed', Succeeded: '!PushFailed' }, result, {
        newBranch: 'corral/task-first',
        retryOf: 'task-first',
        retry: { from: 'push', uid: 'u', commit: 'work', replaces: ['older', 'work'] },
      }),
      spec: { from: 'push', uid: 'uid-a', baseCommit: 'base', commit: 'work', replaces: ['older', 'work'] },
      branch: 'corral/task-first',
    },
  ])('when $when', ({ task, wanted = {}, spec, branch }) => {
    const retry = retryOf(task, wanted)
    expect(retry.spec).toEqual(spec)
    expect(retry.request.new_branch).toBe(branch)
    expect(retry.of).toBe('task-a')
  })

  it.each<{ when: string; wanted: RetryTaskRequest; baseBranch: string | undefined }>([
    { when: 'the push is repeated: the branch the work started from', wanted: {}, baseBranch: 'main' },
    { when: 'the agent runs again: the same branch', wanted: { from: 'agent' }, baseBranch: 'main' },
    {
      when: 'all of it begins anew: the branch is chosen again, as HEAD may have moved',
      wanted: { from: 'start' },
      baseBranch: undefined,
    },
  ])('starts from the right branch when $when', ({ wanted, baseBranch }) => {
    expect(retryOf(pushFailed, wanted).request.base_branch).toBe(baseBranch)
  })

  it.each<{
    when: string
    task: Stored<AgentTask>
    wanted: RetryTaskRequest
    code: string
    says: RegExp
    hint?: RegExp
  }>([
    {
      when: 'it has not ended',
      task: ended({ Admitted: 'Scheduled' }),
      wanted: {},
      code: 'TaskNotFinished',
      says: /not ended yet/,
    },
    {
      when: 'there is no commit to push',
      task: setupFailed,
      wanted: { from: 'push' },
      code: 'RetryNotPossible',
      says: /no commit that could be pushed/,
      hint: /`agent`, or `start`/,
    },
    {
      when: 'its base is not known',
      task: noClone,
      wanted: { from: 'agent' },
      code: 'RetryNotPossible',
      says: /before its base was known/,
      hint: /`from` set to `start`/,
    },
    {
      when: 'there is no work to go on from',
      task: setupFailed,
      wanted: { keep_work: true },
      code: 'RetryNotPossible',
      says: /no work that an agent could go on from/,
      hint: /without `keep_work`/,
    },
    {
      when: 'its work is to be kept and only pushed',
      task: pushFailed,
      wanted: { from: 'push', keep_work: true },
      code: 'RetryNotPossible',
      says: /no work that an agent could go on from/,
      hint: /without `keep_work`/,
    },
    {
      when: 'it ended without changes and only a push is asked for',
      task: ended({ ...collected, Succeeded: 'Succeeded' }, { ...base, outcome: 'no_changes', commit: 'base' }),
      wanted: { from: 'push' },
      code: 'RetryNotPossible',
      says: /no commit that could be pushed/,
      hint: /`agent`, or `start`/,
    },
  ])('is refused when $when', ({ task, wanted, code, says, hint }) => {
    const message = expect.stringMatching(says) as string
    const told = hint ? { hint: expect.stringMatching(hint) as string } : {}
    expect(() => retryOf(task, wanted)).toThrow(expect.objectContaining({ code, message, ...told }) as Error)
  })
})

it('a task whose record was lost has nothing to begin with', () => {
  const { status: _status, ...bare } = noClone
  const conditions = (noClone.status?.conditions ?? []).filter(({ type }) => type === 'Succeeded')
  const task = { ...bare, status: { conditions } }
  expect(retryOf(task, {}).spec).toEqual({ from: 'start', uid: 'uid-a' })
  expect(() => retryOf(task, { from: 'push' })).toThrow('kept no commit that could be pushed')
})
