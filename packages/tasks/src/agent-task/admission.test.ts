import type { AgentTask, Condition, Stored } from '@corral/resources'
import { expect, it } from 'vitest'
import { type ConcurrencyLimiter, createConcurrencyLimiter } from './admission.js'

function task(name: string, ageSeconds: number, conditions: string[] = []): Stored<AgentTask> {
  const time = new Date(Date.UTC(2026, 0, 1) - ageSeconds * 1000).toISOString()
  const all = conditions.map(
    (type): Condition => ({ type, status: 'True', reason: 'x', message: '', lastTransitionTime: time }),
  )
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: { name, namespace: 'corral', uid: name, resourceVersion: '1', creationTimestamp: time },
    spec: { repository: { url: '/r' }, prompt: 'p', agent: { name: 'command', command: 'true' } },
    status: { conditions: all },
  }
}

function grantsFor(tasks: readonly Stored<AgentTask>[], limit: number): ConcurrencyLimiter {
  const limiter = createConcurrencyLimiter({ limit })
  for (const each of tasks) limiter.observe(each)
  return limiter
}

it('NFR-2: of twelve tasks the ten oldest start and two wait', () => {
  const tasks = Array.from({ length: 12 }, (_, index) => task(`t${index}`, index))
  const limiter = grantsFor(tasks, 10)
  const started = tasks.filter(({ metadata }) => limiter.mayStart(metadata.uid)).map(({ metadata }) => metadata.name)
  expect(started).toHaveLength(10)
  expect(started).not.toContain('t0')
  expect(started).not.toContain('t1')
})

it('never gives out more places than the limit while the watch lags behind', () => {
  const tasks = [task('old', 20), task('young', 10)]
  const limiter = grantsFor(tasks, 1)
  expect(limiter.mayStart('old')).toBe(true)
  // Both are still seen as waiting: the place of "old" counts all the same.
  for (const each of tasks) limiter.observe(each)
  expect(limiter.mayStart('young')).toBe(false)
  expect(limiter.mayStart('old')).toBe(true)
  limiter.observe(task('old', 20, ['Admitted']))
  expect(limiter.mayStart('young')).toBe(false)
})

it('gives the place of an ended task to the next one', () => {
  const limiter = grantsFor([task('first', 20, ['Admitted']), task('second', 10)], 1)
  expect(limiter.mayStart('second')).toBe(false)
  limiter.observe(task('first', 20, ['Admitted', 'Succeeded']))
  expect([...limiter.admissible()]).toEqual(['second'])
  expect(limiter.mayStart('second')).toBe(true)
})

it('admits nothing at a limit of zero', () => {
  const limiter = grantsFor([task('a', 1)], 0)
  expect(limiter.mayStart('a')).toBe(false)
})

it('gives back the place of a task that is gone before it was admitted', () => {
  const limiter = grantsFor([task('first', 20), task('second', 10)], 1)
  expect(limiter.mayStart('first')).toBe(true)
  limiter.forget('first')
  expect(limiter.mayStart('second')).toBe(true)
})

it.each([
  ['a task that is to be cancelled', { spec: { cancelRequested: true } }],
  ['a task that is being deleted', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }],
])('%s waits for no place', (_, change: { spec?: object; metadata?: object }) => {
  const { spec, metadata, ...rest } = task('first', 20)
  const leaving = { ...rest, spec: { ...spec, ...change.spec }, metadata: { ...metadata, ...change.metadata } }
  const limiter = grantsFor([leaving, task('second', 10)], 1)
  expect([...limiter.admissible()]).toEqual(['second'])
})

it('a task whose provider asked to wait lets younger ones of others go first, and keeps its place', () => {
  let isHeld = true
  const limiter = createConcurrencyLimiter({ limit: 1, isHeld: ({ metadata }) => isHeld && metadata.name === 'held' })
  for (const each of [task('young', 10), task('held', 30), task('middle', 20)]) limiter.observe(each)
  expect(limiter.inOrder().map(({ metadata }) => metadata.name)).toEqual(['held', 'middle', 'young'])
  expect(limiter.mayStart('held')).toBe(false)
  expect([...limiter.admissible()]).toEqual(['middle'])
  isHeld = false
  expect(limiter.mayStart('middle')).toBe(false)
  expect(limiter.mayStart('held')).toBe(true)
})

it('a place that was given out stays given when an older task appears before the record has come back', () => {
  const limiter = grantsFor([task('young', 10)], 1)
  expect(limiter.mayStart('young')).toBe(true)
  for (const each of [task('young', 10), task('older', 20)]) limiter.observe(each)
  expect(limiter.mayStart('older')).toBe(false)
  expect(limiter.inOrder().map(({ metadata }) => metadata.name)).toEqual(['older'])
})

it('an ended task gives back the place it was given, and tasks of one second go by version and name', () => {
  const limiter = grantsFor([task('a', 10)], 1)
  expect(limiter.mayStart('a')).toBe(true)
  limiter.observe(task('a', 10, ['Succeeded']))
  const later = task('b', 10)
  const versioned = { ...later, metadata: { ...later.metadata, resourceVersion: '2' } }
  for (const each of [versioned, task('d', 10), task('c', 10)]) limiter.observe(each)
  expect(limiter.inOrder().map(({ metadata }) => metadata.name)).toEqual(['c', 'd', 'b'])
  expect([...limiter.admissible()]).toEqual(['c'])
})

it('S4-P4.4: the highest priority goes first, whatever the age, and the oldest of those with the same', () => {
  const prioritised = (name: string, ageSeconds: number, priority?: number): Stored<AgentTask> => {
    const made = task(name, ageSeconds)
    return priority === undefined ? made : { ...made, spec: { ...made.spec, priority } }
  }
  const tasks = [
    prioritised('low', 50, -5),
    prioritised('plain', 40),
    prioritised('zero', 30, 0),
    prioritised('high', 20, 10),
    prioritised('high-young', 10, 10),
  ]
  const limiter = grantsFor(tasks, 1)
  const order = () => limiter.inOrder().map(({ metadata }) => metadata.name)
  expect(order()).toEqual(['high', 'high-young', 'plain', 'zero', 'low'])
  expect(limiter.mayStart('plain')).toBe(false)
  // Changed while it waits, as with `kubectl patch`.
  limiter.observe(prioritised('low', 50, 20))
  expect(order()).toEqual(['low', 'high', 'high-young', 'plain', 'zero'])
  expect(limiter.mayStart('low')).toBe(true)
})
