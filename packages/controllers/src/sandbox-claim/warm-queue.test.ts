import { describe, expect, it } from 'vitest'
import { WarmQueue } from './warm-queue.js'

const item = (key: string, nodeName = ''): { key: string; nodeName: string } => ({ key, nodeName })

function drain(queue: WarmQueue): string[] {
  const keys: string[] = []
  for (let next = queue.take('ns/p'); next; next = queue.take('ns/p')) keys.push(next.key)
  return keys
}

describe('scenario 129: the warm queue', () => {
  it('keeps one entry per sandbox, in the order of arrival', () => {
    const queue = new WarmQueue()
    for (const key of ['a', 'b', 'a', 'c']) queue.add('ns/p', item(key))
    expect(queue.size('ns/p')).toBe(3)
    expect(drain(queue)).toEqual(['a', 'b', 'c'])
  })

  it('keeps the order of the rest when one is removed from the middle', () => {
    const queue = new WarmQueue()
    for (const key of ['a', 'b', 'c']) queue.add('ns/p', item(key))
    queue.remove('ns/p', 'b')
    expect(drain(queue)).toEqual(['a', 'c'])
  })

  it('takes from the node that has most, oldest first', () => {
    const queue = new WarmQueue()
    queue.add('ns/p', item('a', 'n1'))
    queue.add('ns/p', item('b', 'n2'))
    queue.add('ns/p', item('c', 'n2'))
    queue.add('ns/p', item('d'))
    expect(drain(queue)).toEqual(['b', 'a', 'c', 'd'])
  })

  it('lets an item learn its node without losing its place', () => {
    const queue = new WarmQueue()
    queue.add('ns/p', item('a'))
    queue.add('ns/p', item('b', 'n1'))
    queue.add('ns/p', item('a', 'n1'))
    expect(drain(queue)).toEqual(['a', 'b'])
  })

  it('takes those on a node before any number that are on none', () => {
    const queue = new WarmQueue()
    for (const key of ['a', 'b', 'c']) queue.add('ns/p', item(key))
    queue.add('ns/p', item('d', 'n1'))
    expect(drain(queue)).toEqual(['d', 'a', 'b', 'c'])
  })

  it('takes the oldest at all from nodes that have as many', () => {
    const queue = new WarmQueue()
    for (const [key, node] of ['b n2', 'a n1', 'd n1', 'c n2'].map((text) => text.split(' ')))
      queue.add('ns/p', item(key ?? '', node))
    expect(drain(queue)).toEqual(['b', 'a', 'd', 'c'])
  })

  it('keeps the order of a node where several learn late that they are on it', () => {
    const queue = new WarmQueue()
    for (const key of ['a', 'b', 'c']) queue.add('ns/p', item(key))
    for (const key of ['d', 'c', 'e', 'b', 'a']) queue.add('ns/p', item(key, 'n1'))
    expect(drain(queue)).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  it('counts a moved item on its new node only', () => {
    const queue = new WarmQueue()
    for (const key of ['a', 'b', 'c']) queue.add('ns/p', item(key, 'n1'))
    for (const key of ['d', 'e']) queue.add('ns/p', item(key, 'n2'))
    for (const key of ['a', 'b']) queue.add('ns/p', item(key, 'n3'))
    expect(queue.take('ns/p')).toEqual({ key: 'a', nodeName: 'n3' })
    expect(queue.take('ns/p')).toEqual({ key: 'd', nodeName: 'n2' })
  })

  it('keeps one aside until it is added, and then last in line', () => {
    const queue = new WarmQueue()
    for (const key of ['a', 'b']) queue.setAside('ns/p', item(key))
    queue.add('ns/p', item('c'))
    expect([...queue.aside('ns/p')].map(({ key }) => key)).toEqual(['a', 'b'])
    queue.add('ns/p', item('b'))
    expect(queue.size('ns/p')).toBe(3)
    expect(drain(queue)).toEqual(['c', 'b'])
    queue.setAside('ns/p', item('c'))
    queue.remove('ns/p', 'a')
    expect([...queue.aside('ns/p')].map(({ key }) => key)).toEqual(['c'])
  })

  it('takes one that is set aside out of the line', () => {
    const queue = new WarmQueue()
    for (const key of ['a', 'b']) queue.add('ns/p', item(key))
    queue.setAside('ns/p', item('a'))
    expect(queue.size('ns/p')).toBe(2)
    expect(drain(queue)).toEqual(['b'])
  })

  it('knows pools by namespace and name only', () => {
    const queue = new WarmQueue()
    queue.add('ns/p', item('a'))
    expect(queue.take('p')).toBeUndefined()
    queue.removePool('ns/p')
    expect(queue.take('ns/p')).toBeUndefined()
  })
})
