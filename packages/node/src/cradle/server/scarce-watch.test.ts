import { closeSync, openSync } from 'node:fs'
import { expect, it } from 'vitest'
import { machineFiles, machineTerminals, openFilesOf, ScarceWatch } from './scarce-watch.js'

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
      held: () => terminals,
      halt: async () => void done.push(`halt ${key}`),
      kill: async () => void done.push(`kill ${key}`),
    }))
  const told: string[] = []
  const watch = new ScarceWatch({
    holders,
    machine: () => ({ used, all: 3072 }),
    onEnded: (podUid) => told.push(podUid),
    fair: 256,
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

it('open files of a process are counted, and those of one that is gone are none', () => {
  const before = openFilesOf([process.pid])
  const opened = Array.from({ length: 50 }, () => openSync('/dev/null', 'r'))
  expect(openFilesOf([process.pid]) - before).toBeGreaterThanOrEqual(50)
  for (const fd of opened) closeSync(fd)
  expect(openFilesOf([2 ** 30])).toBe(0)
})

it('the machine tells how many files are open', () => {
  const { used, all } = machineFiles()
  expect(used).toBeGreaterThan(0)
  expect(all).toBeGreaterThan(used)
  expect(machineFiles('/nowhere')).toEqual({ used: 0, all: 1 })
})
