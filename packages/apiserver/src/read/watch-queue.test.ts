import { expect, it } from 'vitest'
import { makeFrame } from './representation.js'
import { WatchQueue } from './watch-queue.js'

const frame = (name: string) => makeFrame('ADDED', Object.freeze({ metadata: { name } }))
const nameOf = (found: { event: { object: unknown } } | undefined): string | undefined =>
  (found?.event.object as { metadata: { name: string } } | undefined)?.metadata.name

it('gives frames in order, whether they are waited for or taken', async () => {
  const queue = new WatchQueue(() => {})
  const waiting = queue.next()
  for (const name of ['a', 'b', 'c', 'd']) queue.push(frame(name), 1)
  expect(nameOf((await waiting).value)).toBe('a')
  expect(nameOf(queue.takeReady())).toBe('b')
  expect(nameOf((await queue.next()).value)).toBe('c')
  expect(nameOf(queue.takeReady())).toBe('d')
  expect(queue.takeReady()).toBeUndefined()
})

it('has nothing to take while a reader waits, and nothing once that reader was served', async () => {
  const queue = new WatchQueue(() => {})
  const waiting = queue.next()
  expect(queue.takeReady()).toBeUndefined()
  queue.push(frame('a'), 1)
  expect(queue.takeReady()).toBeUndefined()
  expect(nameOf((await waiting).value)).toBe('a')
})

it('counts what was taken as read: only a reader that falls behind is cut off', () => {
  let endings = 0
  const queue = new WatchQueue(() => endings++)
  for (let index = 0; index < 20_000; index++) {
    queue.push(frame('a'), 1024 * 1024)
    queue.takeReady()
  }
  expect(endings).toBe(0)
  for (let index = 0; index < 17; index++) queue.push(frame('a'), 1024 * 1024)
  expect(endings).toBe(1)
  expect(queue.takeReady()).toBeUndefined()
})
