/** A pod whose processes can be stopped. */
export interface BrakedPod {
  podUid: string
  /** How often the kernel has refused it a process so far. */
  refusedForks(): number
  /** Stops what it has beside its main processes, or all of it. Answers whether anything is stopped. */
  stop(isWhole: boolean): Promise<boolean>
  goOn(): void
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

interface Watched {
  pod: BrakedPod
  state: BrakeState
  isTold: boolean
  /** All of it is stopped: its main process alone goes on forking, or wakes the others. */
  isWhole: boolean
  isStopping: boolean
  timer?: NodeJS.Timeout | undefined
}

/**
 * Stops a pod whose processes fail to start others over and over, for moments that grow. A thousand processes that do
 * nothing but fork hold locks of the kernel in turns, for as long as their small share of the processor makes them wait;
 * starting a program takes the same locks, in every sandbox. A stopped process holds none. Main processes go on as long as
 * that helps: the daemon of a task has to answer, and to end what it has started.
 */
export class ForkBrake {
  readonly #pods = new Map<string, Watched>()
  readonly #timer: NodeJS.Timeout

  constructor(private readonly options: ForkBrakeOptions) {
    this.#timer = setInterval(() => this.look(), options.everyMs).unref()
  }

  watch(pod: BrakedPod): void {
    this.#pods.set(pod.podUid, { pod, state: calm, isTold: false, isWhole: false, isStopping: false })
  }

  /** Looks at every pod that is not stopped. */
  look(): void {
    for (const watched of this.#pods.values()) if (!watched.timer && !watched.isStopping) this.#lookAt(watched)
  }

  #lookAt(watched: Watched): void {
    const { pod } = watched
    watched.timer = undefined
    const { state, isPaused } = brakeStep(watched.state, pod.refusedForks())
    watched.state = state
    if (state.strikes === 0) watched.isWhole = false
    if (!isPaused) return
    if (!watched.isTold) this.options.onPaused(pod.podUid)
    watched.isTold = true
    void this.#stop(watched)
  }

  async #stop(watched: Watched): Promise<void> {
    const { pod, state } = watched
    watched.isStopping = true
    const isStopped = await pod.stop(watched.isWhole).catch(() => false)
    // Eased meanwhile, or gone: nothing of it stays stopped.
    if (!watched.isStopping) return pod.goOn()
    watched.isStopping = false
    if (!isStopped) return
    const before = pod.refusedForks()
    watched.timer = setTimeout(() => {
      watched.isWhole ||= pod.refusedForks() - before >= manyRefused
      pod.goOn()
      watched.timer = setTimeout(() => this.#lookAt(watched), turnMs).unref()
    }, state.pauseMs).unref()
  }

  /** Whether a pod is being stopped again and again just now. */
  isBraked(podUid: string): boolean {
    const watched = this.#pods.get(podUid)
    return watched?.timer !== undefined || watched?.isStopping === true
  }

  /** Lets a pod go on: something is about to be asked of it. It is stopped again only if it goes on as before. */
  ease(podUid: string): void {
    const watched = this.#pods.get(podUid)
    if (!watched || !this.isBraked(podUid)) return
    clearTimeout(watched.timer)
    watched.timer = undefined
    watched.isStopping = false
    watched.isWhole = false
    watched.pod.goOn()
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
