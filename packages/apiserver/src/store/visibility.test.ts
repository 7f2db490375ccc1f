import { afterEach, describe, expect, it } from 'vitest'
import { memoryStorage } from '../storage/memory-storage.js'
import type { Storage } from '../storage/storage.js'
import {
  APPLY,
  configMap,
  configMaps,
  MERGE,
  openServer,
  type ServerCaller,
} from '../testing/server-caller.test-suite.js'

/** Storage whose groups become durable only when the test says so. */
function gatedStorage(): Storage & { hold(): void; release(): void; fail(error: Error): void } {
  const memory = memoryStorage()
  let gate: { open(): void; break(error: Error): void; promise: Promise<void> } | undefined
  return {
    durability: 'full',
    open: () => memory.open(),
    close: () => memory.close(),
    commit(writes) {
      const held = gate
      return held ? held.promise.then(() => memory.commit(writes)) : memory.commit(writes)
    },
    hold() {
      let open = (): void => {}
      let fail = (_error: Error): void => {}
      const promise = new Promise<void>((resolve, reject) => {
        open = resolve
        fail = reject
      })
      gate = { open, break: fail, promise }
    },
    release() {
      gate?.open()
      gate = undefined
    },
    fail(error) {
      gate?.break(error)
      gate = undefined
    },
  }
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('an answer that rests on a write which is not durable yet', () => {
  let caller: ServerCaller | undefined
  afterEach(() => caller?.server.close())

  type Row = { when: string; before?: object; pending: Call; next: Call; answer: number; read: number }
  type Call = [method: string, name: string, body?: object, contentType?: string]
  it.each<Row>([
    {
      when: 'a second create says AlreadyExists',
      pending: ['POST', '', configMap('one')],
      next: ['POST', '', configMap('one')],
      answer: 409,
      read: 200,
    },
    {
      when: 'a second delete says NotFound',
      before: configMap('one'),
      pending: ['DELETE', '/one'],
      next: ['DELETE', '/one'],
      answer: 404,
      read: 404,
    },
    {
      when: 'a patch that changes nothing any more says 200',
      before: configMap('one'),
      pending: ['PATCH', '/one', { data: { a: 'b' } }, MERGE],
      next: ['PATCH', '/one', { data: { a: 'b' } }, MERGE],
      answer: 200,
      read: 200,
    },
    {
      when: 'an apply in conflict says so',
      pending: ['POST', '', configMap('one', { data: { a: 'b' } })],
      next: [
        'PATCH',
        '/one?fieldManager=other',
        { apiVersion: 'v1', kind: 'ConfigMap', ...configMap('one', { data: { a: 'c' } }) },
        APPLY,
      ],
      answer: 409,
      read: 200,
    },
  ])('waits until readers see it: $when', async ({ before, pending, next, answer, read }) => {
    const storage = gatedStorage()
    caller = await openServer({ storage })
    const send = ([method, name, body, contentType]: Call) =>
      caller!.call(method, `${configMaps}${name}`, body, contentType)
    if (before) expect((await caller.call('POST', configMaps, before)).status).toBe(201)
    await turns()
    storage.hold()
    const first = send(pending)
    await turns()
    let isAnswered = false
    const second = send(next).finally(() => {
      isAnswered = true
    })
    await turns()
    expect(isAnswered).toBe(false)
    storage.release()
    expect((await second).status).toBe(answer)
    expect((await caller.call('GET', `${configMaps}/one`)).status).toBe(read)
    expect((await first).status).toBeLessThan(300)
  })

  it('is a server error when that write is lost', async () => {
    const storage = gatedStorage()
    caller = await openServer({ storage })
    await turns()
    storage.hold()
    const first = caller.call('POST', configMaps, configMap('one'))
    await turns()
    const second = caller.call('POST', configMaps, configMap('one'))
    await turns()
    storage.fail(new Error('the disk is gone'))
    expect([(await first).status, (await second).status]).toEqual([500, 500])
  })
})
