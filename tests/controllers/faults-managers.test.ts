import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { fillPool, sized, startStorm } from './claim-storm.js'
import { faultyHandler, seededRandom } from './faulty-handler.js'

const claimCount = sized(500, 60)
const poolSize = sized(50, 10)

it(`two managers at once and a third killed at random under ${claimCount} claims bind each claim once`, async () => {
  await using storm = await startStorm()
  const random = seededRandom(11)
  const reliable = { random, rate: 0, lateByMs: 0 }
  await storm.startManager(faultyHandler(storm.server, reliable)).ready
  await storm.startManager(faultyHandler(storm.server, reliable)).ready
  await fillPool(storm.client, poolSize)

  const names = Array.from({ length: claimCount }, (_, index) => `claim-${index}`)
  const batch = Math.ceil(claimCount / 10)
  let kills = 0
  for (let at = 0; at < names.length; at += batch) {
    const handler = faultyHandler(storm.server, reliable)
    const third = storm.startManager(handler)
    await third.ready
    const created = storm.createClaims(names.slice(at, at + batch))
    await pause(random() * 30) // where in its work the third one dies is left to chance
    handler.kill()
    kills += 1
    await Promise.all([created, third.stop()])
  }
  await storm.expectCalm(claimCount, poolSize)
  expect(kills).toBe(10)
})
