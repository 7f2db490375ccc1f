import { describe, expect, it } from 'vitest'
import { slowStart } from './slow-start.js'

describe('slow start', () => {
  it('scenario 166: of 14 calls with the sixth failing, seven are made and six succeed', async () => {
    const made: number[] = []
    const result = await slowStart(14, async (index) => {
      made.push(index)
      if (index === 5) throw new Error('refused')
    })
    expect(made).toHaveLength(7)
    expect(result).toEqual({ succeeded: 6, error: new Error('refused') })
  })

  it('scenario 166: cancellation after three calls reports three successes and the reason', async () => {
    const stop = new AbortController()
    const result = await slowStart(
      14,
      async (index) => void (index === 2 && stop.abort(new Error('stopped'))),
      stop.signal,
    )
    expect(result).toEqual({ succeeded: 3, error: new Error('stopped') })
  })

  it('doubles its groups and trims the last', async () => {
    const groups: number[] = []
    let open = 0
    const result = await slowStart(10, async () => {
      open += 1
      await Promise.resolve()
      if (open > 0) groups.push(open)
      open = 0
    })
    expect(groups).toEqual([1, 2, 4, 3])
    expect(result).toEqual({ succeeded: 10 })
  })
})
