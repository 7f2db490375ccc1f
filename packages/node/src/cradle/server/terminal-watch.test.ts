import { expect, it } from 'vitest'
import { machineTerminals, TerminalWatch } from './terminal-watch.js'

it.each<{ when: string; used: number; held: Record<string, number>; does: string[] }>([
  { when: 'terminals are plenty', used: 1500, held: { a: 1500 }, does: [] },
  { when: 'few are left, and one container has most', used: 3000, held: { a: 2900, b: 100 }, does: ['halt a'] },
  { when: 'few are left, and many containers have some', used: 3000, held: { a: 200, b: 200 }, does: [] },
])('when $when', async ({ used, held, does }) => {
  const done: string[] = []
  const holders = () =>
    Object.entries(held).map(([key, terminals]) => ({
      key,
      podUid: `pod-${key}`,
      terminals: () => terminals,
      halt: async () => void done.push(`halt ${key}`),
      kill: async () => void done.push(`kill ${key}`),
    }))
  const told: string[] = []
  const watch = new TerminalWatch({
    holders,
    machine: () => ({ used, all: 3072 }),
    onEnded: (podUid) => told.push(podUid),
    everyMs: 1e9,
  })
  await watch.look()
  expect(done).toEqual(does)
  // Its main process has them: the rest was ended and they are still there.
  await watch.look()
  expect(done).toEqual([...does, ...does.map((each) => each.replace('halt', 'kill'))])
  expect(new Set(told).size).toBe(does.length)
  watch.close()
})

it('the machine tells how many it has', () => {
  expect(machineTerminals().all).toBeGreaterThan(0)
  expect(machineTerminals('/nowhere')).toEqual({ used: 0, all: 1 })
})
