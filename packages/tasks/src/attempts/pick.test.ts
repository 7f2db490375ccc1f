import type { AgentTask, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { allAttempts, attemptName, groupCompleteAnnotation, isIncomplete } from '../task-state/group.js'
import { groupView, membersOf } from './attempts.js'
import { pickOf } from './pick.js'

const agents = [{ name: 'claude' }, { name: 'codex' }, { name: 'claude' }]
const condition = (type: string, status: 'True' | 'False', reason: string) => ({
  ...{ type, status, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
})
const attempt = (number: number, more: Partial<NonNullable<AgentTask['status']>> = {}): Stored<AgentTask> =>
  ({
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      ...{ name: attemptName('group-a', number), namespace: 'corral', uid: `u${number}`, resourceVersion: '1' },
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: {
      ...{ repository: { url: '/r' }, prompt: 'x', agent: agents[number - 1]!, newBranch: `b-${number}` },
      group: { name: 'group-a', number, branch: 'b', agents },
    },
    status: {
      conditions: [condition('ResultCollected', 'True', 'Accepted'), condition('Succeeded', 'True', 'Succeeded')],
      ...{ commit: `c${number}`, outcome: 'changes', baseCommit: 'c0', pushed: true },
      ...more,
    },
  }) as Stored<AgentTask>
const pickTask = (number: number, of: number, end: 'True' | 'False' | undefined): Stored<AgentTask> => {
  const made = attempt(of)
  const conditions = end ? [condition('Succeeded', end, end === 'True' ? 'Succeeded' : 'PushRefused')] : []
  return {
    ...made,
    metadata: { ...made.metadata, name: `task-pick${number}` },
    spec: { ...made.spec, retryOf: made.metadata.name, group: { ...made.spec.group!, pick: number } },
    status: { ...made.status, conditions },
  }
}

describe('picking an attempt', () => {
  it.each<{ when: string; picks: Stored<AgentTask>[]; force?: boolean; gives: object }>([
    {
      when: 'nothing was picked yet: its commit is pushed to the branch that was asked for',
      picks: [],
      gives: { kind: 'new', group: { pick: 1 }, retry: { spec: { from: 'push', commit: 'c1', replaces: [] } } },
    },
    { when: 'it was picked: the same task answers', picks: [pickTask(1, 1, 'True')], gives: { kind: 'there' } },
    { when: 'it is being pushed: the same task answers', picks: [pickTask(1, 1, undefined)], gives: { kind: 'there' } },
    {
      when: 'it could not be pushed: it is tried again',
      picks: [pickTask(1, 1, 'False')],
      gives: { kind: 'new', group: { pick: 2 } },
    },
    {
      when: 'another one could not be pushed: this one may have the branch',
      picks: [pickTask(1, 2, 'False')],
      gives: { kind: 'new', group: { pick: 2 } },
    },
    {
      when: 'another one has it and it is forced: only the commit of that one is replaced',
      picks: [pickTask(2, 3, 'True'), pickTask(1, 2, 'True')],
      force: true,
      gives: { kind: 'new', group: { pick: 3 }, retry: { spec: { replaces: ['c2', 'c3'] } } },
    },
  ])('$when', ({ picks, force, gives }) => {
    const pick = pickOf(attempt(1), picks, { force })
    expect(pick).toMatchObject(gives)
    if (pick.kind === 'new') expect(pick.retry.request.new_branch).toBe('b')
  })

  it.each<{
    when: string
    task: Stored<AgentTask>
    picks?: Stored<AgentTask>[]
    force?: boolean
    code: string
    says: RegExp
  }>([
    {
      when: 'another one has the branch',
      task: attempt(1),
      picks: [pickTask(1, 2, 'True')],
      code: 'AlreadyPicked',
      says: /was picked for b/,
    },
    {
      when: 'another one is being pushed, even by force',
      ...{ task: attempt(1), picks: [pickTask(1, 2, undefined)], force: true },
      ...{ code: 'TaskNotFinished', says: /still pushing b/ },
    },
    { when: 'it runs', task: attempt(1, { conditions: [] }), code: 'TaskNotFinished', says: /has not ended/ },
    {
      when: 'it changed nothing',
      task: attempt(1, { outcome: 'no_changes' }),
      code: 'PickNotPossible',
      says: /no commit/,
    },
    { when: 'it is a pick itself', task: pickTask(1, 1, 'True'), code: 'PickNotPossible', says: /not one of several/ },
  ])('is refused when $when', ({ task, picks = [], force, code, says }) => {
    expect(() => pickOf(task, picks, { force })).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(says) }),
    )
  })
})

describe('a group', () => {
  it('is made from its first attempt, which alone is asked to', () => {
    const all = allAttempts(attempt(1))
    expect(all.map(({ spec }) => [spec.agent.name, spec.newBranch, spec.group?.number])).toEqual([
      ['claude', 'b-1', 1],
      ['codex', 'b-2', 2],
      ['claude', 'b-3', 3],
    ])
    expect(all.map(({ metadata }) => metadata?.name)).toEqual([1, 2, 3].map((n) => attemptName('group-a', n)))
    expect(all.map(isIncomplete)).toEqual([true, false, false])
    const noted = attempt(1)
    noted.metadata.annotations = { [groupCompleteAnnotation]: 'true' }
    expect(isIncomplete(noted)).toBe(false)
    expect(isIncomplete({ ...attempt(1), spec: { ...attempt(1).spec, retry: { from: 'agent', uid: 'x' } } })).toBe(
      false,
    )
  })

  it('is shown in order, without the tasks that push, and with what was picked last', () => {
    const tasks = [attempt(2), pickTask(1, 2, 'True'), attempt(1), pickTask(2, 1, 'True')]
    expect(membersOf(tasks, 'group-a').map(({ metadata }) => metadata.uid)).toEqual(['u1', 'u2'])
    expect(groupView(tasks, 'group-a')).toMatchObject({
      branch: 'b',
      picked: { task: attemptName('group-a', 1), by: 'task-pick2' },
    })
    expect(() => groupView(tasks, 'group-b')).toThrow(expect.objectContaining({ code: 'GroupNotFound' }))
  })
})
