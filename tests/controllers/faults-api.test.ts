import { expect, it } from 'vitest'
import { fillPool, sized, startStorm } from './claim-storm.js'
import { faultyHandler, seededRandom } from './faulty-handler.js'

const claimCount = sized(1_000, 80)
const poolSize = sized(50, 10)

it(`conflicts, throttling, errors, lost answers, dropped watches and stale reads over ${claimCount} claims end as without`, async () => {
  await using storm = await startStorm()
  const handler = faultyHandler(storm.server, { random: seededRandom(7), rate: 0.1, lateByMs: 20 })
  await storm.startManager(handler).ready
  await fillPool(storm.client, poolSize)
  const names = Array.from({ length: claimCount }, (_, index) => `claim-${index}`)
  for (let at = 0; at < names.length; at += 20) await storm.createClaims(names.slice(at, at + 20))
  await storm.expectCalm(claimCount, poolSize)
  // Faults are drawn at random: a rare kind may be missing from a small run, most must be there.
  expect(handler.counts.size).toBeGreaterThanOrEqual(5)
})
