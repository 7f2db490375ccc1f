import { describe, expect, it } from 'vitest'
import { CpuOrder, type CpuOrderState, cpuOrderStep } from './cpu-order.js'

const busy = [1000, 1000]

/** What became of a pod with a request of a quarter of a processor that used so many milliseconds in each half second. */
function after(...usedMs: number[]): boolean {
  let state: CpuOrderState = { isBehind: false, last: { usedMs: 0, atMs: 0 }, above: 0, below: 0 }
  for (const used of usedMs)
    state = cpuOrderStep(state, { usedMs: state.last.usedMs + used, atMs: state.last.atMs + 500 }, 250)
  return state.isBehind
}

describe('a pod with a request of a quarter of a processor', () => {
  it.each<{ when: string; used: number[]; isBehind: boolean }>([
    { when: 'it uses its request to the full', used: [125, 125, 125, 125], isBehind: false },
    { when: 'one command takes a processor for half a second', used: [10, 500, 10], isBehind: false },
    { when: 'commands take a processor every other half second', used: [500, 10, 500, 10, 500, 10], isBehind: false },
    { when: 'it uses two processors for a second', used: [...busy], isBehind: true },
    { when: 'it pauses for two seconds after that', used: [...busy, 0, 0, 0, 0], isBehind: true },
    { when: 'it rests for three seconds after that', used: [...busy, 0, 0, 0, 0, 0, 0], isBehind: false },
    {
      when: 'it gets less than its request while it is behind',
      used: [...busy, 60, 60, 60, 60, 60, 60],
      isBehind: false,
    },
  ])('$when: behind others is $isBehind', ({ used, isBehind }) => {
    expect(after(...used)).toBe(isBehind)
  })
})

describe('CpuOrder', () => {
  function ordered() {
    const clock = { nowMs: 0 }
    const order = new CpuOrder({ everyMs: 3_600_000, nowMs: () => clock.nowMs })
    const told: boolean[] = []
    const pod = { usedMs: 0, podUid: 'a', requestMillis: 250 }
    const watch = (): void =>
      order.watch({ ...pod, usedMs: () => pod.usedMs, setBehind: (isBehind) => void told.push(isBehind) })
    const halfSecond = (usedMs: number): void => {
      clock.nowMs += 500
      pod.usedMs += usedMs
      order.look()
    }
    return { order, told, watch, halfSecond }
  }

  it('puts a pod back to the front once before it ends, and looks at it no more', () => {
    const { order, told, watch, halfSecond } = ordered()
    watch()
    for (let each = 0; each < 4; each += 1) halfSecond(1000)
    expect(told).toEqual([true])
    order.forget('a')
    for (let each = 0; each < 4; each += 1) halfSecond(1000)
    expect(told).toEqual([true, false])
    order.close()
  })

  it('leaves a pod that starts at the front for two seconds, one that has started for one', () => {
    const { order, told, watch, halfSecond } = ordered()
    watch()
    for (let each = 0; each < 3; each += 1) halfSecond(1000)
    halfSecond(0)
    expect(told).toEqual([])
    for (let each = 0; each < 2; each += 1) halfSecond(1000)
    expect(told).toEqual([true])
    order.close()
  })

  it('puts a pod back to the front when its request changes, since an idle group takes no weight', () => {
    const { order, told, watch, halfSecond } = ordered()
    watch()
    for (let each = 0; each < 4; each += 1) halfSecond(1000)
    watch()
    expect(told).toEqual([true, false])
    order.close()
  })
})
