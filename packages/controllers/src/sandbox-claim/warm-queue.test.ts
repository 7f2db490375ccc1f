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
