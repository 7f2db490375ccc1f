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
      /** More are refused at every look; while it is stopped only where its main process goes on. */
      goesOn: false,
      isStopped: false,
      refusedForks: () => {
        if (!pod.isStopped || pod.goesOn) pod.refused += 100
        return pod.refused
      },
      stop: async (isWhole: boolean) => {
        pod.isStopped = true
        return said.push(isWhole ? 'stop all' : 'stop the rest') > 0
      },
      goOn: () => {
        pod.isStopped = false
        said.push('go')
      },
    }
    const brake = new ForkBrake({ everyMs: 500, onPaused: (podUid) => said.push(`told of ${podUid}`) })
    brake.watch(pod)
    return { said, brake, pod }
  }

  it('stops a pod but for its main process, lets it go on for a moment, and tells of it once', async () => {
    const { said, brake } = braked()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(said).toEqual(['told of p', 'stop the rest'])
    await vi.advanceTimersByTimeAsync(250)
    expect(said.splice(0)).toEqual(['told of p', 'stop the rest', 'go'])
    await vi.advanceTimersByTimeAsync(100)
    expect(said.splice(0)).toEqual(['stop the rest'])
    await vi.advanceTimersByTimeAsync(500)
    expect(said.splice(0)).toEqual(['go'])
    brake.close()
  })

  it('stops all of a pod whose main process goes on', async () => {
    const { said, brake, pod } = braked()
    pod.goesOn = true
    await vi.advanceTimersByTimeAsync(1_350)
    expect(said).toEqual(['told of p', 'stop the rest', 'go', 'stop all'])
    brake.close()
  })

  it('leaves no pod stopped that is asked for something, or that ends', async () => {
    const { said, brake } = braked()
    await vi.advanceTimersByTimeAsync(1_000)
    brake.ease('p')
    expect(said.splice(0)).toEqual(['told of p', 'stop the rest', 'go'])
    await vi.advanceTimersByTimeAsync(1_000)
    expect(said.splice(0)).toEqual(['stop the rest'])
    brake.forget('p')
    expect(said.splice(0)).toEqual(['go'])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(said).toEqual([])
    brake.close()
  })
})
