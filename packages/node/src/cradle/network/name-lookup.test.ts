import { describe, expect, it } from 'vitest'
import { NameLookup } from './name-lookup.js'

/** A resolver that answers when told to, and remembers what it was asked. */
function scripted() {
  const asked: string[] = []
  const answers = new Map<string, (addresses: string[]) => void>()
  return {
    asked,
    resolve: (name: string) =>
      new Promise<string[]>((answer) => {
        asked.push(name)
        answers.set(name, answer)
      }),
    answer: (name: string, addresses: string[]) => answers.get(name)?.(addresses),
  }
}

describe('NameLookup', () => {
  it.each(['10.1.2.3\0.example.org', 'a b', '', 'é.example'])('never asks for %j', async (name) => {
    const { asked, resolve } = scripted()
    expect(await new NameLookup({ resolve }).addressesOf(name, 'pod')).toEqual([])
    expect(asked).toEqual([])
  })

  it('asks once for a name and remembers the answer, that there is none for a shorter time', async () => {
    let now = 0
    let count = 0
    const resolve = async (name: string): Promise<string[]> => {
      count++
      if (name === 'gone.example') throw new Error('ENOTFOUND')
      return ['192.0.2.1']
    }
    const lookup = new NameLookup({ resolve, now: () => now })
    await lookup.addressesOf('a.example', 'p')
    expect(await lookup.addressesOf('a.example', 'q')).toEqual(['192.0.2.1'])
    expect(await lookup.addressesOf('gone.example', 'p')).toEqual([])
    expect(await lookup.addressesOf('gone.example', 'p')).toEqual([])
    expect(count).toBe(2)
    now = 10_000
    await lookup.addressesOf('gone.example', 'p')
    await lookup.addressesOf('a.example', 'p')
    expect(count).toBe(3)
    now = 60_000
    await lookup.addressesOf('a.example', 'p')
    expect(count).toBe(4)
  })

  it('holds a pod that asks for many names to its share, and lets another pod pass', async () => {
    const { asked, resolve, answer } = scripted()
    const lookup = new NameLookup({ resolve, atOnce: 3, atOncePerPod: 2 })
    const many = ['a', 'b', 'c', 'd'].map((name) => lookup.addressesOf(`${name}.example`, 'greedy'))
    const other = lookup.addressesOf('other.example', 'modest')
    await Promise.resolve()
    expect(asked).toEqual(['a.example', 'b.example', 'other.example'])
    answer('other.example', ['192.0.2.9'])
    expect(await other).toEqual(['192.0.2.9'])
    expect(asked).toHaveLength(3)
    for (const name of ['a', 'b', 'c', 'd']) {
      answer(`${name}.example`, [])
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await Promise.all(many)).toEqual([[], [], [], []])
  })
})
