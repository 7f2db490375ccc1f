import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type BrakeLook, brakeStep, calm, ForkBrake } from './fork-brake.js'

const few = { processes: 20, fresh: 0, replaced: 0, isFull: false }
/** One look after the other, each with so many more refusals. */
const refusals = (...fresh: number[]): Partial<BrakeLook>[] => fresh.map((refused) => ({ refused }))
const crowd = (processes: number, ...fresh: number[]): Partial<BrakeLook>[] =>
  fresh.map((each) => ({ processes, fresh: each, replaced: each }))
/** One that only grows. */
const growing = (processes: number, ...fresh: number[]): Partial<BrakeLook>[] =>
  fresh.map((each) => ({ processes, fresh: each }))

describe('a pod that starts processes', () => {
  it.each<{ when: string; looks: Partial<BrakeLook>[]; does: string }>([
    { when: 'none is refused', looks: refusals(0, 0, 0), does: '- - -' },
    { when: 'it found its limit once', looks: refusals(500, 0, 0), does: '- - -' },
    { when: 'a few are refused at every look', looks: refusals(10, 10, 10, 10), does: '- - - -' },
    { when: 'hundreds of processes work and start none', looks: crowd(900, 0, 0, 0, 0), does: '- - - -' },
    { when: 'hundreds of processes come once', looks: crowd(900, 300, 0, 0, 0), does: '- - - -' },
    { when: 'hundreds of processes come one after the other', looks: growing(300, 40, 40, 40, 40), does: '- - - -' },
    { when: 'few processes start others without end', looks: crowd(99, 90, 90, 90, 90), does: '- - - -' },
    {
      when: 'hundreds start others without end: a few run at a time, at first none',
      looks: crowd(300, 40, 40, 0, 3, 3, 3),
      does: '- 0 4 4 4 4',
    },
    {
      when: 'a build of hundreds of processes comes to its end',
      looks: [...crowd(300, 40, 40, 0, 3), ...crowd(90, 0, 0, 0, 0, 0)],
      does: '- 0 4 4 4 4 4 go -',
    },
    {
      when: 'hundreds are quiet: more of them run from turn to turn, with one turn for none, and at last all',
      looks: crowd(100, 40, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0),
      does: '- 0 4 4 4 4 8 16 32 0 go',
    },
    {
      when: 'they go on as soon as more of them run: few again, and for longer',
      looks: crowd(300, 40, 40, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0),
      does: '- 0 4 4 4 4 8 4 4 0 4 4 4 4 4 4 8',
    },
    { when: 'they are refused without end', looks: refusals(100, 100, 0, 9, 30, 30), does: '- 0 4 4 4 4' },
    {
      when: 'they are refused while only its main process runs: all of it is frozen, longer each time',
      looks: refusals(100, 100, 100, 100, 100, 0),
      does: '- 0 freeze:250 freeze:500 freeze:1000 go',
    },
    {
      when: 'the others are woken by its main process',
      looks: crowd(300, 40, 40, 200, 200, 0),
      does: '- 0 freeze:250 freeze:500 go',
    },
  ])('$when', ({ looks, does }) => {
    let state = calm
    let refused = 0
    const done = looks.map((look) => {
      refused += look.refused ?? 0
      const step = brakeStep(state, { ...few, ...look, refused }, 4)
      state = step.state
      const { action } = step
      if (action.do === 'turn') return String(action.running)
      if (action.do === 'freeze') return `freeze:${state.pauseMs}`
      return action.do === 'goOn' ? 'go' : '-'
    })
    expect(done.join(' ')).toBe(does)
  })

  it('is frozen for ten seconds at most', () => {
    let state = { ...calm, mode: 'frozen' as const, pauseMs: 8_000 }
    for (let round = 1; round < 4; round++) {
      state = brakeStep(state, { ...few, refused: round * 100 }, 4).state as typeof state
      expect(state.pauseMs).toBe(10_000)
    }
  })
})

describe('the brake', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  const braked = () => {
    const said: string[] = []
    const pod = {
      podUid: 'p',
      next: { ...few, refused: 0, processes: 300, fresh: 40, replaced: 40 } as BrakeLook,
      look: () => pod.next,
      takeTurn: async (running: number) => void said.push(`turn of ${running}`),
      freeze: () => void said.push('freeze'),
      goOn: () => void said.push('go'),
    }
    const brake = new ForkBrake({
      everyMs: 500,
      atOnce: 4,
      onBraked: (uid, reason) => said.push(`${uid} is ${reason}`),
    })
    brake.watch(pod)
    return { said, brake, pod }
  }

  it('lets a few processes run at a time, and tells of it once', async () => {
    const { said, brake } = braked()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(said.splice(0)).toEqual(['p is slowed', 'turn of 0'])
    await vi.advanceTimersByTimeAsync(1_000)
    expect(said.splice(0)).toEqual(['turn of 4', 'turn of 4'])
    expect(brake.isBraked('p')).toBe(true)
    brake.close()
  })

  it('tells of a pod that has all its processes, and leaves it alone', async () => {
    const { said, brake, pod } = braked()
    pod.next = { ...few, refused: 0, isFull: true }
    await vi.advanceTimersByTimeAsync(5_000)
    expect(said).toEqual(['p is full'])
    brake.close()
  })

  it('freezes a pod whose main process goes on, and looks at it again a moment after', async () => {
    const { said, brake, pod } = braked()
    await vi.advanceTimersByTimeAsync(1_000)
    pod.next = { ...pod.next, fresh: 200 }
    await vi.advanceTimersByTimeAsync(500)
    expect(said.splice(0)).toEqual(['p is slowed', 'turn of 0', 'freeze'])
    await vi.advanceTimersByTimeAsync(250)
    expect(said.splice(0)).toEqual(['go'])
    await vi.advanceTimersByTimeAsync(100)
    expect(said.splice(0)).toEqual(['freeze'])
    brake.close()
    expect(said).toEqual(['go'])
  })

  it('leaves no pod stopped that is asked for something, or that ends', async () => {
    const { said, brake } = braked()
    await vi.advanceTimersByTimeAsync(1_000)
    brake.ease('p')
    expect(said.splice(0)).toEqual(['p is slowed', 'turn of 0', 'go'])
    await vi.advanceTimersByTimeAsync(1_000)
    expect(said.splice(0)).toEqual(['turn of 0'])
    brake.forget('p')
    expect(said.splice(0)).toEqual(['go'])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(said).toEqual([])
    brake.close()
  })
})
