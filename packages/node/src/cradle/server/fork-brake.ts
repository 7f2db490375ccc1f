import type { BrakeReason } from '../../isolation/isolation.js'

/** A pod whose processes can be stopped. */
export interface BrakedPod {
  podUid: string
  look(): BrakeLook
  /** Lets a number of the processes beside its main ones run, others than the last time, and stops the rest of them. */
  takeTurn(running: number): Promise<void>
  /** Stops all of it. */
  freeze(): void
  goOn(): void
}

/** What a pod is judged by. */
export interface BrakeLook {
  /** How often the kernel has refused it a process so far. */
  refused: number
  processes: number
  /** Processes that were not there at the last look; not counted where there are few in all. */
  fresh: number
  /**
   * The smaller of `fresh` and of the processes that ended since the last look. It stays at 0 while a program only starts
   * its workers; a program that forks and ends processes without pause raises it.
   */
  replaced: number
  /** It has as many processes as it may have. */
  isFull: boolean
}

/**
 * `turns`: a few processes run at a time. `frozen`: all of it is stopped for pauses, since its main process alone goes on,
 * or wakes the others.
 */
export type BrakeMode = 'free' | 'turns' | 'frozen'

export interface BrakeState {
  mode: BrakeMode
  /** The count at the last look. */
  refused: number
  /** Looks in a row that found it at fault, or full. */
  strikes: number
  full: number
  /** Turns so far, and how many of the last ones were quiet. */
  turns: number
  quiet: number
  /** How many processes run in a turn. */
  running: number
  /** Quiet turns before more of them run; twice as many each time that was too soon. */
  patience: number
  pauseMs: number
}

export type BrakeAction = { do: 'nothing' } | { do: 'turn'; running: number } | { do: 'freeze' } | { do: 'goOn' }

/** Fewer than this between two looks is a program that finds its limit, not one that does nothing else. */
const manyRefused = 20
/** A pod with fewer processes is never slowed down: their forks do not delay the start of programs in other pods. */
export const crowdedFrom = 100
const manyReplaced = 10
/**
 * So many new processes while only the main process may run: the main process forks, or has sent SIGCONT to the stopped
 * ones. Turns cannot slow that down, so the whole pod is frozen.
 */
const manyFreshAlone = 50
const strikesBefore = 2
const leastPatience = 4
const longestPatience = 40
const firstPauseMs = 250
const longestPauseMs = 10_000
/** In one of so many turns only the main process runs. If the pod still forks then, stopping the others does not help. */
const emptyTurnEvery = 8

export const calm: BrakeState = {
  mode: 'free',
  refused: 0,
  strikes: 0,
  full: 0,
  turns: 0,
  quiet: 0,
  running: 0,
  patience: 0,
  pauseMs: 0,
}

/** What a look at a pod leads to, where `atOnce` of its processes may run in a turn. Pure. */
export function brakeStep(
  state: BrakeState,
  look: BrakeLook,
  atOnce: number,
): { state: BrakeState; action: BrakeAction } {
  const isRefused = look.refused - state.refused >= manyRefused
  const isCrowd = look.processes >= crowdedFrom
  const seen = { ...state, refused: look.refused, full: look.isFull ? state.full + 1 : 0 }
  if (state.mode === 'free') return judge(seen, isRefused || (isCrowd && look.replaced >= manyReplaced), atOnce)
  if (state.mode === 'frozen') {
    if (!isRefused && !(isCrowd && look.fresh >= manyFreshAlone)) return letGo(seen)
    const pauseMs = Math.min(longestPauseMs, state.pauseMs * 2)
    return { state: { ...seen, pauseMs }, action: { do: 'freeze' } }
  }
  const wasEmpty = (state.turns - 1) % emptyTurnEvery === 0
  if (wasEmpty && (isRefused || (isCrowd && look.fresh >= manyFreshAlone)))
    return { state: { ...seen, mode: 'frozen', pauseMs: firstPauseMs }, action: { do: 'freeze' } }
  // Only a few processes run in a turn: a single new one shows that they still fork.
  const isQuiet = wasEmpty || (!isRefused && !(isCrowd && look.fresh > 0))
  if (!isQuiet) {
    const patience = state.running > atOnce ? Math.min(longestPatience, state.patience * 2) : state.patience
    return takeTurn({ ...seen, quiet: 0, running: atOnce, patience })
  }
  const quiet = state.quiet + 1
  if (!isCrowd && quiet >= state.patience) return letGo(seen)
  // Released all at once, hundreds of processes would fork in the same moment: each quiet turn releases twice as many.
  const running = quiet > state.patience ? state.running * 2 : state.running
  return isCrowd && running >= look.processes ? letGo(seen) : takeTurn({ ...seen, quiet, running })
}

function judge(state: BrakeState, isAtFault: boolean, atOnce: number): ReturnType<typeof brakeStep> {
  const strikes = isAtFault ? state.strikes + 1 : Math.max(0, state.strikes - 1)
  const isKnown = state.patience > leastPatience
  if (!isAtFault || strikes < (isKnown ? 1 : strikesBefore)) {
    const patience = isAtFault ? state.patience : Math.max(0, state.patience - 1)
    return { state: { ...state, strikes, patience }, action: { do: 'nothing' } }
  }
  const patience = Math.min(longestPatience, Math.max(leastPatience, state.patience * 2))
  return takeTurn({ ...state, mode: 'turns', strikes: 0, turns: 0, quiet: 0, running: atOnce, patience })
}

function takeTurn(state: BrakeState): ReturnType<typeof brakeStep> {
  const running = state.turns % emptyTurnEvery === 0 ? 0 : state.running
  return { state: { ...state, turns: state.turns + 1 }, action: { do: 'turn', running } }
}

function letGo(state: BrakeState): ReturnType<typeof brakeStep> {
  return { state: { ...state, mode: 'free', strikes: 0, pauseMs: 0 }, action: { do: 'goOn' } }
}

export interface ForkBrakeOptions {
  /** Told once for a pod and reason. */
  onBraked(podUid: string, reason: BrakeReason): void
  everyMs: number
  /** How many processes of a pod at fault run at a time. */
  atOnce: number
}

/** How long a pod runs between two pauses before it is looked at again. */
const windowMs = 100
const fullLooks = 2

interface Watched {
  pod: BrakedPod
  state: BrakeState
  told: Set<BrakeReason>
  isTurning: boolean
  timer?: NodeJS.Timeout | undefined
}

/**
 * Slows a pod down whose processes start others without end, or fail to. To start a program takes locks of the kernel that
 * all sandboxes share, that of the C library's mappings above all. Hundreds of processes that do nothing but fork hold them
 * in turns, each for as long as the pod's share of the processor makes it wait among the others: seconds. So a few of them
 * run at a time, and the rest is stopped: a stopped process holds none. A build with hundreds of processes loses nothing by
 * it, since a few keep the processors busy. Main processes always run, as long as that helps: the daemon of a task has to
 * answer, and to end what it has started.
 */
export class ForkBrake {
  readonly #pods = new Map<string, Watched>()
  readonly #timer: NodeJS.Timeout

  constructor(private readonly options: ForkBrakeOptions) {
    this.#timer = setInterval(() => this.look(), options.everyMs).unref()
  }

  watch(pod: BrakedPod): void {
    this.#pods.set(pod.podUid, { pod, state: calm, told: new Set(), isTurning: false })
  }

  /** Looks at every pod that is not frozen. */
  look(): void {
    for (const watched of this.#pods.values()) if (!watched.timer && !watched.isTurning) this.#lookAt(watched)
  }

  #lookAt(watched: Watched): void {
    const { pod } = watched
    watched.timer = undefined
    const { state, action } = brakeStep(watched.state, pod.look(), this.options.atOnce)
    watched.state = state
    if (state.full >= fullLooks) this.#tell(watched, 'full')
    if (state.mode !== 'free') this.#tell(watched, 'slowed')
    if (action.do === 'turn') void this.#turn(watched, action.running)
    else if (action.do === 'freeze') this.#freeze(watched)
    else if (action.do === 'goOn') pod.goOn()
  }

  #tell(watched: Watched, reason: BrakeReason): void {
    if (watched.told.has(reason)) return
    watched.told.add(reason)
    this.options.onBraked(watched.pod.podUid, reason)
  }

  async #turn(watched: Watched, running: number): Promise<void> {
    watched.isTurning = true
    // What cannot be stopped goes on; the next look says what that leads to.
    await watched.pod.takeTurn(running).catch(() => undefined)
    watched.isTurning = false
    // Eased meanwhile, or gone: nothing of it stays stopped.
    if (watched.state.mode === 'free') watched.pod.goOn()
  }

  #freeze(watched: Watched): void {
    const { pod, state } = watched
    pod.freeze()
    watched.timer = setTimeout(() => {
      pod.goOn()
      // What was refused and started before does not count.
      watched.state = { ...watched.state, refused: pod.look().refused }
      watched.timer = setTimeout(() => this.#lookAt(watched), windowMs).unref()
    }, state.pauseMs).unref()
  }

  /** Whether processes of a pod are stopped again and again just now. */
  isBraked(podUid: string): boolean {
    const watched = this.#pods.get(podUid)
    return watched !== undefined && (watched.state.mode !== 'free' || watched.isTurning)
  }

  /** Lets a pod go on: something is about to be asked of it. It is stopped again only if it goes on as before. */
  ease(podUid: string): void {
    const watched = this.#pods.get(podUid)
    if (!watched || !this.isBraked(podUid)) return
    clearTimeout(watched.timer)
    watched.timer = undefined
    watched.pod.goOn()
    watched.state = { ...calm, refused: watched.pod.look().refused }
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
