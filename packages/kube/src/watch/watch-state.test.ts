import type { KubeObject, Stored, WatchEvent } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { startWatch, stepWatch, type WatchInput, type WatchState } from './watch-state.js'

const object = (name: string, rv: number, uid = `uid-${name}`): Stored<KubeObject> => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name, uid, resourceVersion: String(rv), creationTimestamp: '2026-01-01T00:00:00Z' },
})
const event = (type: WatchEvent['type'], of: KubeObject): WatchInput<KubeObject> => ({
  type: 'event',
  event: { type, object: of },
})
const listed = (rv: number, ...items: Stored<KubeObject>[]): WatchInput<KubeObject> => ({
  type: 'listed',
  items,
  resourceVersion: String(rv),
})
const bookmark = (rv: number, end = false): WatchInput<KubeObject> =>
  event('BOOKMARK', {
    metadata: { resourceVersion: String(rv), ...(end ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}) },
  })
const status = (code: number, reason: string) => ({ kind: 'Status', apiVersion: 'v1', code, reason, metadata: {} })
const gone = event('ERROR', status(410, 'Expired') as KubeObject)
const failed = (code: string, httpStatus: number): WatchInput<KubeObject> => ({
  type: 'failed',
  error: Object.assign(new Error(code), { code, status: httpStatus }),
})

const list = () => startWatch<KubeObject>({ allowInitial: false })
const initial = () => startWatch<KubeObject>({ allowInitial: true })
const at = (rv: number) => startWatch<KubeObject>({ resourceVersion: String(rv), allowInitial: false })

function play(state: WatchState<KubeObject>, inputs: readonly WatchInput<KubeObject>[]) {
  const says: string[] = []
  let current = state
  for (const input of inputs) {
    const [deltas, next] = stepWatch(current, input)
    for (const { type, object: changed } of deltas) says.push(`${type} ${changed.metadata.name}`)
    current = next
  }
  return { says, state: current }
}

describe('stepWatch', () => {
  it.each<{
    when: string
    from: () => WatchState<KubeObject>
    inputs: WatchInput<KubeObject>[]
    says: string[]
    next: Partial<WatchState<KubeObject>>
  }>([
    {
      when: 'the first list arrives',
      from: list,
      inputs: [listed(5, object('a', 1), object('b', 5))],
      says: ['ADDED a', 'ADDED b'],
      next: { mode: 'stream', resourceVersion: '5', complete: true },
    },
    {
      when: 'an empty list arrives',
      from: list,
      inputs: [listed(5)],
      says: [],
      next: { mode: 'stream', resourceVersion: '5', complete: true },
    },
    {
      when: 'objects change after the list',
      from: list,
      inputs: [
        listed(5, object('a', 1)),
        event('MODIFIED', object('a', 6)),
        event('ADDED', object('b', 7)),
        event('DELETED', object('a', 8)),
      ],
      says: ['ADDED a', 'MODIFIED a', 'ADDED b', 'DELETED a'],
      next: { resourceVersion: '8' },
    },
    {
      when: 'an event repeats what is known',
      from: list,
      inputs: [listed(5, object('a', 1)), event('ADDED', object('a', 1)), event('MODIFIED', object('a', 1))],
      says: ['ADDED a'],
      next: { mode: 'stream' },
    },
    {
      when: 'a known name comes back with another uid',
      from: list,
      inputs: [listed(5, object('a', 1)), event('ADDED', object('a', 6, 'other'))],
      says: ['ADDED a', 'DELETED a', 'ADDED a'],
      next: {},
    },
    {
      when: 'a bookmark moves the version on',
      from: list,
      inputs: [listed(5), bookmark(9)],
      says: [],
      next: { resourceVersion: '9', mode: 'stream' },
    },
    {
      when: 'the history is gone: as an event',
      from: list,
      inputs: [listed(5, object('a', 1)), gone],
      says: ['ADDED a'],
      next: { mode: 'list', failures: 1 },
    },
    {
      when: 'the history is gone: as a status',
      from: list,
      inputs: [listed(5, object('a', 1)), failed('Expired', 410)],
      says: ['ADDED a'],
      next: { mode: 'list', failures: 1 },
    },
    {
      when: 'a list after lost history shows what was missed',
      from: list,
      inputs: [
        listed(5, object('same', 1), object('changes', 2), object('goes', 3), object('reborn', 4)),
        gone,
        listed(20, object('same', 1), object('changes', 12), object('comes', 13), object('reborn', 14, 'other')),
      ],
      says: [
        ...['ADDED same', 'ADDED changes', 'ADDED goes', 'ADDED reborn'],
        ...['DELETED goes', 'MODIFIED changes', 'ADDED comes', 'DELETED reborn', 'ADDED reborn'],
      ],
      next: { mode: 'stream', resourceVersion: '20', failures: 0 },
    },
    {
      when: 'the stream ends at its deadline',
      from: list,
      inputs: [listed(5), { type: 'ended', idle: false }],
      says: [],
      next: { mode: 'stream', resourceVersion: '5', failures: 0 },
    },
    {
      when: 'streams end at once, again and again',
      from: list,
      inputs: [listed(5), { type: 'ended', idle: true }, { type: 'ended', idle: true }],
      says: [],
      next: { mode: 'stream', failures: 2 },
    },
    {
      when: 'the connection is lost and found',
      from: list,
      inputs: [listed(5), failed('ConnectionLost', 0), event('ADDED', object('a', 6))],
      says: ['ADDED a'],
      next: { mode: 'stream', failures: 0, resourceVersion: '6' },
    },
    {
      when: 'a watch starts at a version',
      from: () => at(5),
      inputs: [event('MODIFIED', object('a', 6)), event('DELETED', object('b', 7))],
      says: ['MODIFIED a', 'DELETED b'],
      next: { mode: 'stream', complete: false },
    },
    {
      when: 'a watch that started at a version must list: only what changed since is reported',
      from: () => at(5),
      inputs: [gone, listed(20, object('old', 3), object('new', 9))],
      says: ['ADDED new'],
      next: { complete: true },
    },
    {
      when: 'a watch started at a version of another history: everything is new',
      from: () => at(500),
      inputs: [gone, listed(20, object('a', 3))],
      says: ['ADDED a'],
      next: { complete: true, resourceVersion: '20' },
    },
    {
      when: 'the first objects come on the stream itself',
      from: initial,
      inputs: [event('ADDED', object('a', 1)), event('ADDED', object('b', 2)), bookmark(7, true)],
      says: ['ADDED a', 'ADDED b'],
      next: { mode: 'stream', resourceVersion: '7', complete: true },
    },
    {
      when: 'the stream breaks before all first objects came',
      from: initial,
      inputs: [event('ADDED', object('a', 1)), failed('ConnectionLost', 0), bookmark(7, true)],
      says: [],
      next: { mode: 'stream', complete: true },
    },
    {
      when: 'the server refuses to send the first objects on the stream',
      from: initial,
      inputs: [failed('Invalid', 422)],
      says: [],
      next: { mode: 'list', allowInitial: false, failures: 0 },
    },
    {
      when: 'the server never announces the end of the first objects',
      from: initial,
      inputs: [event('ADDED', object('a', 1)), { type: 'stalled' }],
      says: [],
      next: { mode: 'list', allowInitial: false, arriving: undefined },
    },
    {
      when: 'the server runs ahead of its own cache',
      from: list,
      inputs: [
        listed(5),
        event('ERROR', {
          ...status(504, 'Timeout'),
          details: { causes: [{ reason: 'ResourceVersionTooLarge' }] },
        } as KubeObject),
      ],
      says: [],
      next: { mode: 'list' },
    },
  ])('when $when', ({ from, inputs, says, next }) => {
    const result = play(from(), inputs)
    expect(result.says).toEqual(says)
    expect(result.state).toMatchObject(next)
  })
})
