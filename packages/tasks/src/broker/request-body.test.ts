import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { bodyLimits, ReplayRoom, RequestBody } from './request-body.js'

/** The body of a request with these pieces, once it is whole. */
async function bodyOf(pieces: readonly (string | Buffer)[], more: { room?: ReplayRoom; maxBytes?: number } = {}) {
  const request = new PassThrough()
  let isTooLarge = false
  const body = new RequestBody(request as unknown as IncomingMessage, {
    uid: 'task',
    room: more.room ?? new ReplayRoom(),
    onTooLarge: () => {
      isTooLarge = true
    },
    maxBytes: more.maxBytes,
  })
  for (const piece of pieces) request.write(piece)
  request.end()
  return { isWhole: await body.complete, body, isTooLarge: () => isTooLarge }
}

it('a request is sent again byte for byte', async () => {
  const { body, isWhole, isTooLarge } = await bodyOf(['{"a":', '1}'])
  expect([isWhole, body.size, body.replay()?.toString(), isTooLarge()]).toEqual([true, 7, '{"a":1}', false])
})

it('a request may be as large as the limit, and not one byte more', async () => {
  expect((await bodyOf(['1234'], { maxBytes: 4 })).isTooLarge()).toBe(false)
  expect((await bodyOf(['12', '345'], { maxBytes: 4 })).isTooLarge()).toBe(true)
})

it('a request that is too large to be kept is not sent again, and takes no room', async () => {
  const room = new ReplayRoom(2 * bodyLimits.replayBytes)
  const half = Buffer.alloc(bodyLimits.replayBytes / 2)
  const { body } = await bodyOf([half, half, 'x', 'y'], { room })
  expect(body.replay()).toBeUndefined()
  expect(room.take('task', 2 * bodyLimits.replayBytes)).toBe(true)
})

it('requests of one task share its room, which is given back when they are over', async () => {
  const room = new ReplayRoom(10)
  const first = await bodyOf(['1234567890'], { room })
  expect(first.body.replay()?.length).toBe(10)
  expect((await bodyOf(['x'], { room })).body.replay()).toBeUndefined()
  expect(room.take('other', 10)).toBe(true)
  first.body.release()
  first.body.release()
  expect(first.body.replay()).toBeUndefined()
  expect((await bodyOf(['x'], { room })).body.replay()?.toString()).toBe('x')
})

it.each<[says: string, pieces: string[], model: string | undefined]>([
  ['names it', ['{"model": "m-1", "messages": []}'], 'm-1'],
  ['names it across two pieces', ['{"mod', 'el":"m-1"}'], 'm-1'],
  ['names none', ['{"messages": []}'], undefined],
  ['names it behind 64 KiB of other words', [`{"x":"${'y'.repeat(64 * 1024)}","model":"late"}`], undefined],
])('the model of a request that %s', async (_, pieces, model) => {
  expect((await bodyOf(pieces)).body.model).toBe(model)
})
