import type { KubeObject } from '@corral/resources'
import { afterEach, describe, expect, it } from 'vitest'
import { freezeJson } from '../objects/plain-json.js'
import type { Storage, StorageWrite } from './storage.js'

export interface StorageUnderTest {
  /** A storage on the same place each time it is called within one test. */
  make(): Storage
  /** Whether what was written is there after close and open. */
  readonly isDurable: boolean
  cleanUp(): void
}

export function write(rv: number, name: string, operation: StorageWrite['operation'], previousRv = 0): StorageWrite {
  const object: KubeObject = { metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: String(rv) } }
  return { rv, collection: 'configmaps', namespace: 'ns', name, operation, previousRv, object: freezeJson(object) }
}

/** What every storage promises to the store above it. */
export function describeStorage(name: string, prepare: () => StorageUnderTest): void {
  describe(`${name} storage`, () => {
    let subject: StorageUnderTest
    const opened: Storage[] = []
    const open = async (): Promise<{ storage: Storage; contents: Awaited<ReturnType<Storage['open']>> }> => {
      const storage = subject.make()
      opened.push(storage)
      return { storage, contents: await storage.open() }
    }
    afterEach(async () => {
      for (const storage of opened.splice(0)) await storage.close()
      subject.cleanUp()
    })

    it('starts empty, with a version to count on from', async () => {
      subject = prepare()
      const { contents } = await open()
      expect(contents.rows).toEqual([])
      expect(contents.lastRv).toBeGreaterThan(0)
    })

    it('refuses writes after it was closed', async () => {
      subject = prepare()
      const { storage } = await open()
      await storage.close()
      expect(() => storage.commit([write(1, 'a', 'create')])).toThrow(
        expect.objectContaining({ code: 'StorageClosed' }),
      )
    })

    it('has what was written after it is opened again, or nothing at all in memory', async () => {
      subject = prepare()
      const { storage, contents } = await open()
      const rv = contents.lastRv
      await storage.commit([write(rv + 1, 'a', 'create'), write(rv + 2, 'b', 'create')])
      await storage.commit([write(rv + 3, 'a', 'update', rv + 1), write(rv + 4, 'b', 'delete', rv + 2)])
      await storage.close()
      const { contents: again } = await open()
      expect(again.rows.map((row) => [row.name, row.object.metadata?.resourceVersion])).toEqual(
        subject.isDurable ? [['a', String(rv + 3)]] : [],
      )
    })

    it('never hands out a version twice', async () => {
      subject = prepare()
      let last = 0
      for (let round = 0; round < 3; round++) {
        const { storage, contents } = await open()
        expect(contents.lastRv).toBeGreaterThanOrEqual(last)
        last = contents.lastRv + 1
        await storage.commit([write(last, `o${round}`, 'create')])
        await storage.close()
      }
    })
  })
}
