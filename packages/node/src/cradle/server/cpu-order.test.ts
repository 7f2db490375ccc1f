import { describe, expect, it } from 'vitest'
import { CpuOrder, type CpuOrderState, cpuOrderStart, cpuOrderStep, isRoomWanted } from './cpu-order.js'

const busy = [1000, 1000]

/** What became of a pod with a request of a quarter of a processor that used so many milliseconds in each half second. */
function after(...looks: (number | [usedMs: number, kernelMs: number])[]): CpuOrderState {
  const start = cpuOrderStart({ usedMs: 0, kernelMs: 0, atMs: 0 })
  let state: CpuOrderState = { ...start, above: 0, inKernel: 0 }
  for (const look of looks) {
    const { last } = state
    const [usedMs, kernelMs] = Array.isArray(look) ? look : [look, 0]
    const next = { usedMs: last.usedMs + usedMs, kernelMs: last.kernelMs + kernelMs, atMs: last.atMs + 500 }
    state = cpuOrderStep(state, next, 250)
  }
  return state
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
    expect(after(...used).isBehind).toBe(isBehind)
  })

  const writes: [number, number][] = [
    [500, 450],
    [500, 450],
  ]
  it.each<{ when: string; looks: (number | [number, number])[]; isInKernel: boolean }>([
    { when: 'it writes and syncs for a second', looks: [...writes], isInKernel: true },
    {
      when: 'it compiles for seconds',
      looks: [
        [1000, 300],
        [1000, 300],
        [1000, 300],
      ],
      isInKernel: false,
    },
    {
      when: 'one command writes for half a second',
      looks: [
        [500, 450],
        [500, 100],
        [500, 450],
      ],
      isInKernel: false,
    },
    {
      when: 'its calls stay below its request',
      looks: [
        [120, 120],
        [120, 120],
        [120, 120],
      ],
      isInKernel: false,
    },
    {
      when: 'it goes on with the little time that it is left',
      looks: [...writes, ...Array<[number, number]>(8).fill([80, 75])],
      isInKernel: true,
    },
    { when: 'it compiles after that for two seconds', looks: [...writes, 900, 900, 900, 900], isInKernel: true },
    { when: 'it compiles after that for three', looks: [...writes, 900, 900, 900, 900, 900, 900], isInKernel: false },
  ])('$when: busy in the kernel is $isInKernel', ({ looks, isInKernel }) => {
    expect(after(...looks).isInKernel).toBe(isInKernel)
  })

  it.each<{ others: string; looks: (number | [number, number])[][]; isWanted: boolean }>([
    { others: 'no other pod', looks: [], isWanted: false },
    { others: 'one that rests', looks: [[0, 0, 0, 0, 0, 0]], isWanted: false },
    { others: 'one that has just rested for two seconds', looks: [[40, 0, 0, 0, 0]], isWanted: true },
    { others: 'one that runs commands', looks: [[40, 40, 40, 40, 40, 40]], isWanted: true },
    { others: 'another that is busy in the kernel', looks: [[...writes]], isWanted: false },
  ])('that is busy in the kernel, beside $others: room is wanted is $isWanted', ({ looks, isWanted }) => {
    expect(isRoomWanted([after(...writes), ...looks.map((each) => after(...each))])).toBe(isWanted)
  })
})

describe('CpuOrder', () => {
  function ordered() {
    const clock = { nowMs: 0 }
    const order = new CpuOrder({ everyMs: 3_600_000, nowMs: () => clock.nowMs })
    const told: boolean[] = []
    const apart: boolean[] = []
    const pod = { podUid: 'a', requestMillis: 250 }
    const used = { usedMs: 0, kernelMs: 0 }
    const watch = (): void =>
      order.watch({
        ...pod,
        used: () => ({ ...used }),
        setBehind: (isBehind) => void told.push(isBehind),
        setApart: (isApart) => void apart.push(isApart),
      })
    const other = { usedMs: 0, kernelMs: 0 }
    const watchOther = (): void =>
      order.watch({
        podUid: 'b',
        requestMillis: 250,
        used: () => ({ ...other }),
        setBehind: () => {},
        setApart: () => apart.push(false),
      })
    const halfSecond = (usedMs: number, kernelMs = 0, otherMs = 0): void => {
      clock.nowMs += 500
      used.usedMs += usedMs
      used.kernelMs += kernelMs
      other.usedMs += otherMs
      order.look()
    }
    return { order, told, apart, watch, watchOther, halfSecond }
  }

  it('keeps a pod that is busy in the kernel apart while another works, and no longer', () => {
    const { order, apart, watch, watchOther, halfSecond } = ordered()
    watch()
    for (let each = 0; each < 8; each += 1) halfSecond(1000, 900)
    expect(apart).toEqual([])
    watchOther()
    halfSecond(1000, 900, 40)
    expect(apart).toEqual([true])
    for (let each = 0; each < 6; each += 1) halfSecond(1000, 900)
    expect(apart).toEqual([true, true, true, true, true, true, false])
    halfSecond(1000, 900, 40)
    order.forget('a')
    expect(apart.slice(-2)).toEqual([true, false])
    order.close()
  })

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
