import { expect, it } from 'vitest'
import { fileSizes } from './file-sizes.js'

it.each(fileSizes().map((size) => [size.what, size] as const))('%s: within its budget', (_, { kilobytes, budget }) => {
  expect(kilobytes).toBeGreaterThan(1)
  expect(kilobytes).toBeLessThanOrEqual(budget)
})
