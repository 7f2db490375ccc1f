import { describe, expect, it } from 'vitest'
import { parseProcessors, withoutReserved } from './processors.js'

describe('processors for pods that are kept to a part of them', () => {
  it.each<{ machine: string; list: string; kept: number[] | undefined }>([
    { machine: 'one processor, of which none can be spared', list: '0\n', kept: undefined },
    { machine: 'two', list: '0-1\n', kept: [1] },
    { machine: 'eight', list: '0-7\n', kept: [2, 3, 4, 5, 6, 7] },
    { machine: 'some of a larger machine', list: '2,4-5,9\n', kept: [4, 5, 9] },
    { machine: 'a list the kernel does not give', list: '\n', kept: undefined },
  ])('$machine', ({ list, kept }) => {
    expect(withoutReserved(parseProcessors(list))).toEqual(kept)
  })
})
