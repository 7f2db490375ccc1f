import { describe, expect, it } from 'vitest'
import { StorageError, type StorageWrite } from '../storage/storage.js'
import { GroupCommit } from './group-commit.js'

const write = (name: string): StorageWrite => ({
  rv: 1,
  collection: 'configmaps',
  namespace: 'default',
  name,
  operation: 'create',
  previousRv: 0,
  object: {},
})

interface Held {
  names: string[]
  arrive(): void
  lose(error: Error): void
}

/** Storage in which each group becomes durable, or is lost, when the test says so. */
function heldStorage() {
  const groups: Held[] = []
  const published: string[] = []
  const discarded: string[] = []
  const commits = new GroupCommit(
    {
      durability: 'full',
      commit: (writes) =>
        new Promise((arrive, lose) => {
          groups.push({ names: writes.map(({ name }) => name), arrive, lose })
        }),
    },
    ({ name }) => published.push(name),
    ({ name }) => discarded.push(name),
  )
  const sent = (): string[][] => groups.map(({ names }) => names)
  return { commits, groups, published, discarded, sent }
}

describe('writes on their way to storage', () => {
  it('of one turn go together, and those that come meanwhile after them', async () => {
    const { commits, groups, published, sent } = heldStorage()
    void commits.add(write('a'))
    void commits.add(write('b'))
    await expect.poll(sent).toEqual([['a', 'b']])
    void commits.add(write('c'))
    const last = commits.add(write('d'))
    await new Promise((resolve) => setImmediate(resolve))
    expect({ sent: sent(), published }).toEqual({ sent: [['a', 'b']], published: [] })
    groups[0]?.arrive()
    await expect.poll(sent).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ])
    expect(published).toEqual(['a', 'b'])
    groups[1]?.arrive()
    await last
    expect(published).toEqual(['a', 'b', 'c', 'd'])
  })

  it('are lost with the group before them, although the disk would take them, and no more are taken', async () => {
    const { commits, groups, published, sent } = heldStorage()
    const first = commits.add(write('a'))
    await expect.poll(sent).toEqual([['a']])
    const second = commits.add(write('b'))
    groups[0]?.lose(new Error('the disk is gone'))
    await expect(first).rejects.toThrow('the disk is gone')
    await expect(second).rejects.toThrow('the disk is gone')
    expect(() => commits.check()).toThrow('the disk is gone')
    expect({ sent: sent(), published }).toEqual({ sent: [['a']], published: [] })
  })

  it('are discarded with the group that found no room, the newest first, and later ones are taken again', async () => {
    const { commits, groups, published, discarded, sent } = heldStorage()
    const first = commits.add(write('a'))
    await expect.poll(sent).toEqual([['a']])
    const second = commits.add(write('b'))
    groups[0]?.lose(new StorageError('DiskFull', 'no room'))
    await expect(first).rejects.toMatchObject({ code: 'DiskFull' })
    await expect(second).rejects.toMatchObject({ code: 'DiskFull' })
    expect({ discarded, isDiskFull: commits.isDiskFull }).toEqual({ discarded: ['b', 'a'], isDiskFull: true })
    commits.check()
    const third = commits.add(write('c'))
    await expect.poll(sent).toEqual([['a'], ['c']])
    groups[1]?.arrive()
    await third
    expect({ published, isDiskFull: commits.isDiskFull }).toEqual({ published: ['c'], isDiskFull: false })
  })

  it('settle for whoever asks for everything so far', async () => {
    const { commits, groups, published, sent } = heldStorage()
    await commits.settled()
    void commits.add(write('a'))
    const settled = commits.settled()
    await expect.poll(sent).toEqual([['a']])
    groups[0]?.arrive()
    await settled
    expect(published).toEqual(['a'])
  })
})
