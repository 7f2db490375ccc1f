/** A pod whose processes can be stopped. */
export interface BrakedPod {
  podUid: string
  /** How often the kernel has refused it a process so far. */
  refusedForks(): number
  /** Stops every process of it, or lets them go on. Answers whether the kernel can do that here. */
  freeze(isFrozen: boolean): boolean
}

export interface BrakeState {
  /** The count at the last look. */
  refused: number
  /** Looks in a row that found a pod at its limit. */
  strikes: number
  pauseMs: number
}

/** Fewer than this between two looks is a program that finds its limit, not one that does nothing else. */
const manyRefused = 20
const strikesBeforePause = 2
const firstPauseMs = 250
const longestPauseMs = 10_000

export const calm: BrakeState = { refused: 0, strikes: 0, pauseMs: 0 }

/** What a look at a pod's count leads to: nothing, or a pause, each twice as long as the one before. Pure. */
export function brakeStep(state: BrakeState, refused: number): { state: BrakeState; isPaused: boolean } {
  const isMany = refused - state.refused >= manyRefused
  const strikes = isMany ? state.strikes + 1 : Math.max(0, Math.min(state.strikes, strikesBeforePause) - 1)
  const isPaused = isMany && strikes >= strikesBeforePause
  const longer = Math.min(longestPauseMs, Math.max(firstPauseMs, state.pauseMs * 2))
  const pauseMs = isPaused ? longer : strikes === 0 ? 0 : state.pauseMs
  return { state: { refused, strikes, pauseMs }, isPaused }
}

export interface ForkBrakeOptions {
  /** Told once for a pod, when it is stopped for the first time. */
  onPaused(podUid: string): void
  everyMs: number
}

/** How long a pod runs between two pauses before it is looked at again. */
const turnMs = 100

/**
 * Stops a pod whose processes fail to start others over and over, for moments that grow. A thousand processes that do
 * nothing but fork hold locks of the kernel in turns, for as long as their small share of the processor makes them wait;
 * starting a program takes the same locks, in every sandbox. A stopped process holds none.
 */
export class ForkBrake {
  readonly #pods = new Map<string, { pod: BrakedPod; state: BrakeState; timer?: NodeJS.Timeout; isTold: boolean }>()
  readonly #timer: NodeJS.Timeout

  constructor(private readonly options: ForkBrakeOptions) {
    this.#timer = setInterval(() => this.look(), options.everyMs).unref()
  }

  watch(pod: BrakedPod): void {
    this.#pods.set(pod.podUid, { pod, state: calm, isTold: false })
  }

  /** Looks at every pod that is not stopped. */
  look(): void {
    for (const [podUid, { timer }] of this.#pods) if (!timer) this.#lookAt(podUid)
  }

  #lookAt(podUid: string): void {
    const watched = this.#pods.get(podUid)
    if (!watched) return
    delete watched.timer
    const { pod } = watched
    const { state, isPaused } = brakeStep(watched.state, pod.refusedForks())
    watched.state = state
    if (!isPaused) return
    if (!watched.isTold) this.options.onPaused(podUid)
    watched.isTold = true
    if (!pod.freeze(true)) return
    watched.timer = setTimeout(() => {
      pod.freeze(false)
      watched.timer = setTimeout(() => this.#lookAt(podUid), turnMs).unref()
    }, state.pauseMs).unref()
  }

  /** Whether a pod is being stopped again and again just now. */
  isBraked(podUid: string): boolean {
    return this.#pods.get(podUid)?.timer !== undefined
  }

  /** Lets a pod go on: something is about to be asked of it. It is stopped again only if it goes on as before. */
  ease(podUid: string): void {
    const watched = this.#pods.get(podUid)
    if (!watched?.timer) return
    clearTimeout(watched.timer)
    delete watched.timer
    watched.pod.freeze(false)
    watched.state = { ...calm, refused: watched.pod.refusedForks() }
  }

  forget(podUid: string): void {
    this.ease(podUid)
    this.#pods.delete(podUid)
  }

  close(): void {
    clearInterval(this.#timer)
    for (const podUid of [...this.#pods.keys()]) this.forget(podUid)
  }
}
