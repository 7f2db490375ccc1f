import type { AgentTask, Stored } from '@corral/resources'
import { expect, it } from 'vitest'
import { acceptedAtAnnotation, acceptedTimes, taskPage } from './task-page.js'

const now = new Date('2026-01-01T00:00:00.000Z')
const next = acceptedTimes(() => now)

function task(name: string, resourceVersion: number, at?: string): Stored<AgentTask> {
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      name,
      uid: name,
      resourceVersion: String(resourceVersion),
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(at ? { annotations: { [acceptedAtAnnotation]: at } } : {}),
    },
    spec: { repository: { url: '/r' }, prompt: 'p', agent: { name: 'command' } },
  }
}
const all = { limit: 7, includes: () => true }

it('a listing of a thousand tasks that change meanwhile has every one of them once', () => {
  let tasks = Array.from({ length: 1000 }, (_, index) => task(`task-${index}`, index, next()))
  const seen: string[] = []
  let after: string | undefined
  let version = 1000
  do {
    const { page, next: cursor } = taskPage(tasks, { ...all, after })
    seen.push(...page.map(({ metadata }) => metadata.name))
    after = cursor
    // Every task is recorded anew, in another order, and the one the cursor came from is deleted.
    tasks = tasks.filter(({ metadata }) => metadata.name !== seen.at(-1)).reverse()
    tasks = tasks.map(({ metadata, ...rest }) => ({
      ...rest,
      metadata: { ...metadata, resourceVersion: `${version++}` },
    }))
  } while (after)
  expect(seen).toEqual(Array.from({ length: 1000 }, (_, index) => `task-${999 - index}`))
})

it('tasks without the annotation keep an order too', () => {
  const tasks = ['c', 'a', 'b'].map((name, index) => task(name, index))
  expect(taskPage(tasks, all).page.map(({ metadata }) => metadata.name)).toEqual(['c', 'b', 'a'])
  expect(taskPage(tasks, { ...all, after: 'b' }).page.map(({ metadata }) => metadata.name)).toEqual(['a'])
})

const place = '2026-01-01T00:00:00.000000Z~a'

it.each(['task-nope', '', '~', '2026~x', 'x'.repeat(500), `x${place}`, `${place} `, `${place}~`, place.slice(0, -1)])(
  'refuses the cursor %j, and says what to pass on',
  (after) => {
    let refusal: unknown
    try {
      taskPage([task('a', 1)], { ...all, after })
    } catch (error) {
      refusal = error
    }
    expect(refusal).toMatchObject({
      code: 'BadRequest',
      message: `after: "${after.slice(0, 100)}" is no place in the list of tasks`,
      hint: expect.stringContaining('`next`') as string,
    })
  },
)

it('a page that holds all there is has no next one', () => {
  const times = acceptedTimes(() => now)
  const tasks = ['a', 'b'].map((name) => task(name, 1, times()))
  expect(taskPage(tasks, { ...all, limit: 2 })).not.toHaveProperty('next')
  expect(taskPage(tasks, { ...all, limit: 1 }).next).toMatch(/^2026-01-01T00:00:00\.\d{6}Z~b$/)
  expect(taskPage([], all)).toEqual({ page: [] })
})

it('shows only what is asked for, also after a cursor', () => {
  const tasks = ['a', 'b', 'c'].map((name) => task(name, 1, next()))
  const includes = ({ metadata }: AgentTask): boolean => metadata?.name !== 'b'
  expect(taskPage(tasks, { limit: 9, includes }).page.map(({ metadata }) => metadata.name)).toEqual(['c', 'a'])
  expect(taskPage(tasks, { limit: 9, includes, after: 'c' }).page.map(({ metadata }) => metadata.name)).toEqual(['a'])
})

it('tasks taken within a millisecond have times that differ, in their order', () => {
  const times = acceptedTimes(() => now)
  expect([times(), times()]).toEqual(['2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000001Z'])
})

it('the order is kept in an annotation that earlier releases wrote too', () => {
  expect(acceptedAtAnnotation).toBe('corral.dev/accepted-at')
})
