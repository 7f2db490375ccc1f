import { expect, it } from 'vitest'
import { nameHash } from './name-hash.js'

it.each([
  ['', '811c9dc5'],
  ['a', 'e40c292c'],
  ['pool', '91dd7983'],
  ['my-sandbox', '374de8f5'],
  ['sandbox-name', 'ab179450'],
  ['test-pool', '59733166'],
  ['test-template', '69155462'],
  ['my-pool', '244dc158'],
  ['warmpool', '8c6a35c6'],
])('the hash of "%s" is %s', (text, hash) => {
  expect(nameHash(text)).toBe(hash)
})
