import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** Numbers that the names of tests mention: `scenario 4`, `scenarios 7, 8 and 9`. */
function mentioned(text: string): number[] {
  const lists = [...text.matchAll(/\bscenarios? ((?:\d+(?:, | and )?)+)/g)]
  return lists.flatMap(([, list = '']) => [...list.matchAll(/\d+/g)].map(([number]) => Number(number)))
}

it('each of the 180 scenarios of the behaviour reference has a test that names it', () => {
  const places = ['tests', 'packages']
  const files = places.flatMap((place) =>
    readdirSync(join(root, place), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules') && !/(^|\/)dist\//.test(name))
      .map((name) => join(root, place, name)),
  )
  const named = new Set(files.flatMap((file) => mentioned(readFileSync(file, 'utf8'))))
  const all = Array.from({ length: 180 }, (_, index) => index + 1)
  expect(all.filter((number) => !named.has(number))).toEqual([])
})
