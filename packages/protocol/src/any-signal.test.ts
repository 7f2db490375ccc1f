import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { anySignal } from './any-signal.js'

it('a time limit among other signals is kept, also when garbage is collected before it', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const lifetime = new AbortController()
  let ended = 0
  for (let count = 0; count < 20; count += 1) {
    const onAbort = (): void => {
      ended += 1
    }
    anySignal([lifetime.signal, AbortSignal.timeout(100)]).addEventListener('abort', onAbort, { once: true })
  }
  await new Promise((resolve) => setImmediate(resolve)) // what this turn still holds is free in the next
  collectGarbage()
  await expect.poll(() => ended).toBe(20)
})

it('the reason is that of the first to abort', () => {
  const controllers = [new AbortController(), new AbortController()]
  const signal = anySignal(controllers.map((controller) => controller.signal))
  controllers[1]?.abort('second')
  controllers[0]?.abort('first')
  expect(signal.reason).toBe('second')
})
