import { describe, expect, it } from 'vitest'
import { ByteQueue } from './byte-queue.js'

const bytes = (text: string) => new TextEncoder().encode(text)

async function read(queue: ByteQueue): Promise<string> {
  let text = ''
  for await (const chunk of queue) text += new TextDecoder().decode(chunk)
  return text
}

describe('ByteQueue', () => {
  it('hands on chunks in order, before and after the reader came', async () => {
    const queue = new ByteQueue()
    queue.push(bytes('a'))
    const reading = read(queue)
    queue.push(bytes('b'))
    await Promise.resolve()
    queue.push(bytes('c'))
    queue.end()
    queue.push(bytes('too late'))
    expect(await reading).toBe('abc')
  })

  it('says when it is full and when there is room again', async () => {
    let drains = 0
    const queue = new ByteQueue(4, () => drains++)
    queue.push(bytes('123'))
    expect(queue.isFull).toBe(false)
    queue.push(bytes('456'))
    expect(queue.isFull).toBe(true)
    const reader = queue[Symbol.asyncIterator]()
    await reader.next()
    expect([queue.isFull, drains]).toEqual([false, 1])
  })

  it('gives an error only after what was queued before it', async () => {
    const queue = new ByteQueue()
    queue.push(bytes('a'))
    queue.end(new Error('lost'))
    queue.end()
    const reader = queue[Symbol.asyncIterator]()
    expect((await reader.next()).done).toBe(false)
    await expect(reader.next()).rejects.toThrow('lost')
  })

  it('drops everything once its reader has left', async () => {
    let drains = 0
    const queue = new ByteQueue(4, () => drains++)
    queue.push(bytes('first'))
    queue.push(bytes('second'))
    for await (const _ of queue) break
    expect([queue.isFull, drains]).toEqual([false, 1])
    queue.push(bytes('third'))
    expect(queue.isFull).toBe(false)
  })

  it('ends a waiting reader when discarded', async () => {
    const queue = new ByteQueue()
    const reading = read(queue)
    queue.discard()
    expect(await reading).toBe('')
  })
})
