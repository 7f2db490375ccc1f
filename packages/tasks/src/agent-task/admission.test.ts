import type { AgentTask, Condition, Stored } from '@corral/resources'
import { expect, it } from 'vitest'
import { createGrants } from './admission.js'

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

it('NFR-2: of twelve tasks the ten oldest start and two wait', () => {
  const tasks = Array.from({ length: 12 }, (_, index) => task(`t${index}`, index))
  const grants = createGrants({ list: () => tasks, limit: 10 })
  const started = tasks.filter(({ metadata }) => grants.mayStart(metadata.uid)).map(({ metadata }) => metadata.name)
  expect(started).toHaveLength(10)
  expect(started).not.toContain('t0')
  expect(started).not.toContain('t1')
})

it('never gives out more places than the limit while the watch lags behind', () => {
  const tasks = [task('old', 20), task('young', 10)]
  const grants = createGrants({ list: () => tasks, limit: 1 })
  expect(grants.mayStart('old')).toBe(true)
  // The list still shows both as waiting: the place of "old" counts all the same.
  expect(grants.mayStart('young')).toBe(false)
  expect(grants.mayStart('old')).toBe(true)
})

it('gives the place of an ended task to the next one', () => {
  let tasks = [task('first', 20, ['Admitted']), task('second', 10)]
  const grants = createGrants({ list: () => tasks, limit: 1 })
  expect(grants.mayStart('second')).toBe(false)
  tasks = [task('first', 20, ['Admitted', 'Succeeded']), task('second', 10)]
  expect([...grants.admissible()]).toEqual(['second'])
  expect(grants.mayStart('second')).toBe(true)
})

it('admits nothing at a limit of zero', () => {
  const grants = createGrants({ list: () => [task('a', 1)], limit: 0 })
  expect(grants.mayStart('a')).toBe(false)
})
