import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { brakeStep, calm, ForkBrake } from './fork-brake.js'

describe('a pod that fails to start processes', () => {
  it.each<{ when: string; counts: number[]; pauses: number[] }>([
    { when: 'it never does', counts: [0, 0, 0], pauses: [] },
    { when: 'it found its limit once', counts: [500, 500, 500], pauses: [] },
    { when: 'a few are refused at every look', counts: [10, 20, 30, 40], pauses: [] },
    { when: 'it goes on at a second look', counts: [100, 200], pauses: [250] },
    {
      when: 'it never stops',
      counts: [1e2, 2e2, 3e2, 4e2, 5e2, 6e2, 7e2, 8e2, 9e2],
      pauses: [250, 500, 1e3, 2e3, 4e3, 8e3, 1e4, 1e4],
    },
    { when: 'it rests for one look', counts: [100, 200, 200, 300], pauses: [250, 500] },
    { when: 'it has come to rest', counts: [100, 200, 200, 200, 300, 400], pauses: [250, 250] },
  ])('is stopped for $pauses ms when $when', ({ counts, pauses }) => {
    let state = calm
    const found = counts.flatMap((refused) => {
      const step = brakeStep(state, refused)
      state = step.state
      return step.isPaused ? state.pauseMs : []
    })
    expect(found).toEqual(pauses)
  })
})

describe('the brake', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  const braked = () => {
    const said: string[] = []
    const pod = {
      podUid: 'p',
      refused: 0,
      refusedForks: () => (pod.refused += 100),
      freeze: (isFrozen: boolean) => said.push(isFrozen ? 'stop' : 'go') > 0,
    }
    const brake = new ForkBrake({ everyMs: 500, onPaused: (podUid) => said.push(`told of ${podUid}`) })
    brake.watch(pod)
    return { said, brake }
  }

  it('stops a pod, lets it go on for a moment, and tells of it once', () => {
    const { said, brake } = braked()
    vi.advanceTimersByTime(1_000)
    expect(said).toEqual(['told of p', 'stop'])
    vi.advanceTimersByTime(250)
    expect(said.splice(0)).toEqual(['told of p', 'stop', 'go'])
    vi.advanceTimersByTime(100)
    expect(said.splice(0)).toEqual(['stop'])
    vi.advanceTimersByTime(500)
    expect(said.splice(0)).toEqual(['go'])
    brake.close()
  })

  it('leaves no pod stopped that is asked for something, or that ends', () => {
    const { said, brake } = braked()
    vi.advanceTimersByTime(1_000)
    brake.ease('p')
    expect(said.splice(0)).toEqual(['told of p', 'stop', 'go'])
    vi.advanceTimersByTime(1_000)
    expect(said.splice(0)).toEqual(['stop'])
    brake.forget('p')
    expect(said.splice(0)).toEqual(['go'])
    vi.advanceTimersByTime(60_000)
    expect(said).toEqual([])
    brake.close()
  })
})
