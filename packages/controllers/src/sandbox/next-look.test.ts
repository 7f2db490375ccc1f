import { expect, it } from 'vitest'
import { type NextLook, nextLook } from './next-look.js'

it.each<{ when: string; world: Partial<Parameters<typeof nextLook>[0]>; look: NextLook }>([
  { when: 'nothing waits', world: {}, look: { deferral: 'end', result: {} } },
  {
    when: 'its time is up some day',
    world: { expiry: { expired: false, requeueAfterMs: 9_000 } },
    look: { deferral: 'end', result: { requeueAfterMs: 9_000 } },
  },
  {
    when: 'its time is up: at once',
    world: { expiry: { expired: true } },
    look: { deferral: 'end', result: { requeueAfterMs: 1 } },
  },
  {
    when: 'a patch waits for others to join it',
    world: { deferredMs: 300 },
    look: { deferral: 'begin', result: { requeueAfterMs: 300 } },
  },
  {
    when: 'a patch waits and its time is up before',
    world: { deferredMs: 300, expiry: { expired: false, requeueAfterMs: 200 } },
    look: { deferral: 'begin', result: { requeueAfterMs: 200 } },
  },
  {
    when: 'a patch waits and its time is up after',
    world: { deferredMs: 300, expiry: { expired: false, requeueAfterMs: 2_000 } },
    look: { deferral: 'begin', result: { requeueAfterMs: 300 } },
  },
  {
    when: 'a child could not be written: the patch goes on waiting, and the error brings the Sandbox back',
    world: { deferredMs: 300, hasErrors: true },
    look: { deferral: 'keep', result: {} },
  },
  {
    when: 'a child could not be written and no patch waits',
    world: { hasErrors: true, expiry: { expired: false, requeueAfterMs: 2_000 } },
    look: { deferral: 'keep', result: { requeueAfterMs: 2_000 } },
  },
])('when $when', ({ world, look }) => {
  expect(nextLook({ expiry: { expired: false }, deferredMs: undefined, hasErrors: false, ...world })).toEqual(look)
})
