import { deepEqual, equal, ok } from 'node:assert/strict'
import { type Check, check } from '../harness/check.js'
import type { Context } from '../harness/context.js'
import { startServerProcess } from '../harness/server-process.js'
import { WatchStream } from '../harness/watch-stream.js'

const path = '/api/v1/namespaces/default/secrets'
const embeddedOnly = 'about the embedded server’s own storage'
const heavy = { embeddedOnly, heavy: true }

async function ownServer(t: Context, mode: 'memory' | 'sqlite') {
  const server = await startServerProcess(mode)
  t.after(() => server.close())
  const create = async (name: string): Promise<number> => {
    const answer = await server.http.call('POST', path, { body: { metadata: { name } } })
    return Number(answer.is(201).metadata.resourceVersion)
  }
  const list = async () => (await server.http.call('GET', path)).is(200)
  return { server, create, list }
}

export const durability: readonly Check[] = [
  check(
    131,
    'kill -9 during a thousand writes loses no acknowledged one and reuses no version',
    async (t) => {
      const { server, create, list } = await ownServer(t, 'sqlite')
      const acknowledged = new Map<string, number>()
      let next = 0
      const writer = async (): Promise<void> => {
        while (next < 1_000) {
          const name = `w-${next++}`
          acknowledged.set(name, await create(name))
        }
      }
      const writers = Promise.allSettled(Array.from({ length: 8 }, writer))
      await t.eventually('half of it', async () => acknowledged.size >= 400)
      await server.kill()
      await writers
      const before = Math.max(...acknowledged.values())
      await server.start()
      const stored = new Map(
        (await list()).items.map(({ metadata }) => [metadata.name, Number(metadata.resourceVersion)]),
      )
      for (const [name, version] of acknowledged) equal(stored.get(name), version, name)
      const after = await create('after')
      ok(after > Math.max(before, ...stored.values()), 'versions go on')
      const response = await server.http.open('GET', `${path}?watch=1&resourceVersion=${before}`)
      const stream = new WatchStream(response, 'watch after the crash')
      const events = await stream.until(({ type, object }) => type === 'ERROR' || object.metadata.name === 'after')
      stream.close()
      if (events.at(-1)?.type === 'ERROR') equal(events.at(-1)?.object.code, 410)
    },
    heavy,
  ),
  check(
    132,
    'after a restart in memory mode an old version is 410, so informers list again',
    async (t) => {
      const { server, create } = await ownServer(t, 'memory')
      const version = await create('one')
      await server.stop()
      await server.start()
      const stream = new WatchStream(
        await server.http.open('GET', `${path}?watch=1&resourceVersion=${version}`),
        'stale watch',
      )
      const event = await stream.next()
      deepEqual([event?.type, event?.object.code, event?.object.reason], ['ERROR', 410, 'Expired'])
      stream.close()
    },
    heavy,
  ),
  check(
    133,
    'over ten restarts no version is given twice',
    async (t) => {
      const { server, create } = await ownServer(t, 'sqlite')
      const versions: number[] = []
      for (let round = 0; round < 10; round += 1) {
        versions.push(await create(`a-${round}`), await create(`b-${round}`))
        await (round % 2 === 0 ? server.kill() : server.stop())
        await server.start()
      }
      deepEqual(
        versions,
        [...new Set(versions)].sort((a, b) => a - b),
      )
    },
    heavy,
  ),
]
