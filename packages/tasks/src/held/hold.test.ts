import type { AgentTask, Condition, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { mayUseModel } from '../broker/brokered-task.js'
import { createHeldLimit } from './held-limit.js'
import { heldUntilOf, holdMove, letGoAnnotation } from './hold.js'

const t0 = new Date('2026-01-01T00:00:00Z')
const at = (seconds: number): Date => new Date(t0.getTime() + seconds * 1000)
const condition = (type: string, reason = 'Done', status: Condition['status'] = 'True'): Condition => ({
  ...{ type, status, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
})
interface Shape {
  spec?: Partial<AgentTask['spec']>
  status?: Partial<NonNullable<AgentTask['status']>>
  annotations?: Record<string, string>
  deleting?: boolean
  collected?: string
  uid?: string
}
const task = ({ spec, status, annotations, deleting, collected = 'Accepted', uid = 'u' }: Shape = {}) =>
  ({
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      ...{ name: 'task-a', namespace: 'corral', uid, resourceVersion: '1', creationTimestamp: t0.toISOString() },
      ...(annotations ? { annotations } : {}),
      ...(deleting ? { deletionTimestamp: t0.toISOString() } : {}),
    },
    spec: { repository: { url: '/r' }, prompt: 'x', agent: { name: 'command' }, holdSandboxSeconds: 60, ...spec },
    status: {
      sandbox: { claimName: 'task-a', sandboxName: 's' },
      conditions: [condition('SetupDone'), condition('AgentFinished'), condition('ResultCollected', collected)],
      ...status,
    },
  }) as Stored<AgentTask>
const ended = (shape: Shape = {}): Stored<AgentTask> => {
  const made = task(shape)
  const sandbox = { claimName: 'task-a', sandboxName: 's', heldUntil: at(60).toISOString() }
  const conditions = [...(made.status?.conditions ?? []), condition('Succeeded', 'Succeeded')]
  return { ...made, status: { ...made.status, sandbox, conditions, ...shape.status } }
}

describe('a task that ends', () => {
  it.each<{ when: string; shape?: Shape; code?: string; holds: number | undefined }>([
    { when: 'it succeeded', holds: 60 },
    { when: 'it failed and its work is out', code: 'ChecksFailed', holds: 60 },
    { when: 'it ran out of time', code: 'Timeout', holds: 60 },
    { when: 'nothing changed', shape: { collected: 'NoChanges' }, holds: 60 },
    { when: 'nobody asked for it', shape: { spec: { holdSandboxSeconds: 0 } }, holds: undefined },
    { when: 'it was cancelled', code: 'Cancelled', holds: undefined },
    { when: 'its plan had been rejected', code: 'Cancelled', shape: { collected: '' }, holds: undefined },
    { when: 'it is to be cancelled at last', shape: { spec: { cancelRequested: true } }, holds: undefined },
    { when: 'its sandbox was lost', shape: { collected: 'FromCheckpoint' }, code: 'SandboxLost', holds: undefined },
    {
      when: 'its sandbox is kept anyway',
      shape: { spec: { keepSandbox: true } },
      code: 'AgentFailed',
      holds: undefined,
    },
    { when: 'it never had one', shape: { status: { sandbox: { claimName: 'task-a' } } }, holds: undefined },
  ])('holds its sandbox for $holds s when $when', ({ shape, code = 'Succeeded', holds }) => {
    expect(heldUntilOf(task(shape), { code }, at(5))).toEqual(holds === undefined ? undefined : at(5 + holds))
  })

  it('without a word about it holds none, although a plan would wait with one', () => {
    const { holdSandboxSeconds: _, ...spec } = task().spec
    expect(heldUntilOf({ ...task(), spec }, { code: 'Succeeded' }, t0)).toBeUndefined()
  })

  it('has a broker token that is dead while its sandbox is held', () => {
    expect(mayUseModel(ended())).toBe(false)
  })
})

describe('a sandbox that is held', () => {
  const world = { task: ended(), hasClaim: true, isSandboxLost: false, isOverLimit: false, now: at(10) }
  it.each<{ when: string; more: Partial<typeof world>; move: object }>([
    {
      when: 'nothing happens: is looked at when its time is over',
      more: {},
      move: { move: 'hold', requeueAfterMs: 50_000 },
    },
    { when: 'its time is over: goes', more: { now: at(60) }, move: { move: 'none' } },
    {
      when: 'a follow-up has it: is noted as gone',
      more: { hasClaim: false },
      move: { move: 'let-go', reason: 'gone' },
    },
    { when: 'it is lost: is noted as lost', more: { isSandboxLost: true }, move: { move: 'let-go', reason: 'lost' } },
    { when: 'others came: makes room', more: { isOverLimit: true }, move: { move: 'let-go', reason: 'limit' } },
    {
      when: 'that was noted: goes',
      more: { task: ended({ annotations: { [letGoAnnotation]: 'limit' } }), isOverLimit: true },
      move: { move: 'none' },
    },
    { when: 'its task is deleted: goes', more: { task: ended({ deleting: true }) }, move: { move: 'none' } },
    { when: 'its task had none: has nothing to do', more: { task: task() }, move: { move: 'none' } },
  ])('$when', ({ more, move }) => {
    expect(holdMove({ ...world, ...more })).toEqual(move)
  })
})

describe('the limit of held sandboxes', () => {
  const heldAt = (uid: string, seconds: number, more: Shape = {}): Stored<AgentTask> => {
    const made = ended({ uid, ...more })
    return { ...made, status: { ...made.status, times: { finishedAt: at(seconds).toISOString() } } }
  }
  it('lets the oldest go, however they are heard of', () => {
    const limit = createHeldLimit({ limit: 2, now: () => at(10) })
    expect(limit.observe(heldAt('new', 3))).toEqual([])
    expect(limit.observe(heldAt('old', 1))).toEqual([])
    expect(limit.observe(heldAt('middle', 2))).toEqual(['old'])
    expect(['old', 'middle', 'new'].map((uid) => limit.isOver(uid))).toEqual([true, false, false])
    limit.observe(heldAt('old', 1, { annotations: { [letGoAnnotation]: 'limit' } }))
    expect(limit.isOver('old')).toBe(false)
    expect(limit.observe(heldAt('newest', 4))).toEqual(['middle'])
    limit.forget('newest')
    expect(limit.isOver('middle')).toBe(false)
  })
  it('does not count what is over', () => {
    let now = at(10)
    const limit = createHeldLimit({ limit: 1, now: () => now })
    limit.observe(heldAt('old', 1))
    now = at(70)
    const later = { ...heldAt('new', 69), status: { ...heldAt('new', 69).status } }
    later.status.sandbox = { claimName: 'x', sandboxName: 's', heldUntil: at(120).toISOString() }
    expect(limit.observe(later)).toEqual([])
  })
})
