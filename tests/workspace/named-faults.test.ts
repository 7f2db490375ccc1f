import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { namedMutants } from '../../scripts/mutants/named.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

it.each(namedMutants)('the fault "$what" can still be put in, and its test is there', ({ file, find, test }) => {
  expect(readFileSync(join(root, file), 'utf8').split(find)).toHaveLength(2)
  expect(existsSync(join(root, test))).toBe(true)
})
