import { describe, expect, it } from 'vitest'
import { Crowd } from './crowd.js'

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

describe('the processes of a group', () => {
  it.each([
    {
      when: 'are few: not told apart',
      looks: [range(0, 9), range(20, 29)],
      last: { processes: 0, fresh: 0, replaced: 0 },
    },
    { when: 'are seen for the first time', looks: [range(0, 50)], last: { processes: 50, fresh: 0, replaced: 0 } },
    { when: 'stay', looks: [range(0, 50), range(0, 50)], last: { processes: 50, fresh: 0, replaced: 0 } },
    { when: 'only grow', looks: [range(0, 50), range(0, 80)], last: { processes: 80, fresh: 30, replaced: 0 } },
    { when: 'only end', looks: [range(0, 50), range(20, 50)], last: { processes: 30, fresh: 0, replaced: 0 } },
    { when: 'end and come', looks: [range(0, 50), range(20, 80)], last: { processes: 60, fresh: 30, replaced: 20 } },
    { when: 'are all others', looks: [range(0, 50), range(50, 90)], last: { processes: 40, fresh: 40, replaced: 40 } },
  ])('$when', ({ looks, last }) => {
    const crowd = new Crowd(10)
    const seen = looks.map((pids) => crowd.look({ pids: () => pids, processCount: () => pids.length }))
    expect(seen.at(-1)).toEqual(last)
  })
})
