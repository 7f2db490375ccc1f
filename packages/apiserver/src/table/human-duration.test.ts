import { expect, it } from 'vitest'
import { ageOf, humanDuration } from './index.js'

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

it.each<[seconds: number, text: string]>([
  [-5, '<invalid>'],
  [-1, '0s'],
  [0, '0s'],
  [119, '119s'],
  [120, '2m'],
  [5 * MINUTE + 3, '5m3s'],
  [10 * MINUTE + 3, '10m'],
  [179 * MINUTE, '179m'],
  [3 * HOUR + 5 * MINUTE, '3h5m'],
  [9 * HOUR + 5 * MINUTE, '9h'],
  [2 * DAY + 3 * HOUR, '2d3h'],
  [9 * DAY, '9d'],
  [729 * DAY, '729d'],
  [3 * 365 * DAY + 2 * DAY, '3y2d'],
  [9 * 365 * DAY, '9y'],
])('%d seconds are %s', (seconds, text) => {
  expect(humanDuration(seconds * 1000)).toBe(text)
})

it('an absent time has no age', () => {
  expect(ageOf(undefined, new Date())).toBe('<unknown>')
})
