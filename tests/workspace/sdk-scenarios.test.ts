import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** Scenarios of the clients' reference that are not ours, and those that are shown elsewhere than by a test's name. */
const elsewhere: Readonly<Record<string, readonly number[]>> = {
  'a list of live handles: ours are the caller’s own': [22],
  'Go handles, which open and close': [28, 29, 30, 31, 32, 33, 34, 35, 41],
  'GKE snapshots': [71, 72, 73, 74, 75, 76, 77],
  'the router': [96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109],
  'watches that end, are empty or too old: packages/kube/src/watch': [9, 10],
  'no routing headers inside a cluster: packages/sdk/src/sandbox-exec.test.ts': [39],
  'a gateway that goes: packages/sdk/src/wait-for.ts, with every other object': [44],
  'tunnels that die: tests/faults/exec-cuts.test.ts': [47],
  'a limit per attempt, which no call of ours has': [55],
  'sandboxd on the wire, with upstream’s own: conformance/daemon': [64, 65, 66, 93],
}

/** Numbers at the beginning of a test's name, or of the name of one of its rows: `'83 84: are written …'`. */
function named(text: string): number[] {
  const names = [...text.matchAll(/['"`]((?:\d{1,3} )*\d{1,3}): [^'"`]/g), ...text.matchAll(/and (\d{1,3}): /g)]
  return names.flatMap(([, numbers = '']) => numbers.split(' ').map(Number))
}

it('each of the 110 scenarios of the clients’ reference is named by a test, or listed as somebody else’s', () => {
  const places = ['packages/sdk/src', 'packages/daemon/src', 'tests/platform']
  const files = places.flatMap((place) =>
    readdirSync(join(root, place), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => join(root, place, name)),
  )
  const shown = new Set(files.flatMap((file) => named(readFileSync(file, 'utf8'))))
  const listed = Object.values(elsewhere).flat()
  const all = Array.from({ length: 110 }, (_, index) => index + 1)
  expect(all.filter((number) => !shown.has(number) && !listed.includes(number))).toEqual([])
})
