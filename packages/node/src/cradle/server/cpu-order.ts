/** A pod that can be put behind the others. */
export interface OrderedPod {
  podUid: string
  /** Its CPU request, in thousandths of a processor. */
  requestMillis: number
  /** Processor time of its processes so far; `undefined` where the kernel does not count it. */
  usedMs(): number | undefined
  /** Whether its processes run only while those of no other pod want to. */
  setBehind(isBehind: boolean): void
}

export interface CpuLook {
  usedMs: number
  atMs: number
}

export interface CpuOrderState {
  isBehind: boolean
  last: CpuLook
  /** Looks in a row that found it above its request, and not above it. */
  above: number
  below: number
}

const looksAbove = 2
/** The start of a pod, of a daemon for example, is above any small request; so many looks of it do not count. */
const looksOfStart = 2
/** Long enough that a pod whose pauses are shorter stays behind; short enough that one that starves gets its request. */
const looksBelow = 6

/** What a look at a pod leads to. Pure. */
export function cpuOrderStep(state: CpuOrderState, look: CpuLook, requestMillis: number): CpuOrderState {
  const allowedMs = ((look.atMs - state.last.atMs) * requestMillis) / 1000
  const isAbove = look.usedMs - state.last.usedMs > allowedMs
  const above = isAbove ? state.above + 1 : 0
  const below = isAbove ? 0 : state.below + 1
  const isBehind = state.isBehind ? below < looksBelow : above >= looksAbove
  return { isBehind, last: look, above, below }
}

export interface CpuOrderOptions {
  everyMs: number
  /** Milliseconds that only ever grow. */
  nowMs(): number
}

/**
 * Puts pods that use more of the processor than they asked for behind those that do not (`cpu.idle` of their control group).
 * By weight alone a pod that does little gets its share, and yet waits: for the turn of each of the others, and for what a
 * system call of theirs does before it gives the processor back. The kernel lets go of an idle group at once. Pods that are
 * all above their requests share the processor evenly; one that gets less than its request comes to the front again.
 */
export class CpuOrder {
  readonly #pods = new Map<string, { pod: OrderedPod; state: CpuOrderState }>()
  readonly #timer: NodeJS.Timeout

  constructor(private readonly options: CpuOrderOptions) {
    this.#timer = setInterval(() => this.look(), options.everyMs).unref()
  }

  /** Again with another request for the same pod: it starts at the front. */
  watch(pod: OrderedPod): void {
    this.forget(pod.podUid)
    const usedMs = pod.usedMs()
    if (usedMs === undefined) return
    const last = { usedMs, atMs: this.options.nowMs() }
    this.#pods.set(pod.podUid, { pod, state: { isBehind: false, last, above: -looksOfStart, below: 0 } })
  }

  look(): void {
    for (const watched of this.#pods.values()) {
      const { pod, state } = watched
      const usedMs = pod.usedMs()
      if (usedMs === undefined) continue
      watched.state = cpuOrderStep(state, { usedMs, atMs: this.options.nowMs() }, pod.requestMillis)
      if (watched.state.isBehind !== state.isBehind) pod.setBehind(watched.state.isBehind)
    }
  }

  /** Back to the front, and no longer looked at: before a pod ends, which its processes have to run for. */
  forget(podUid: string): void {
    const watched = this.#pods.get(podUid)
    this.#pods.delete(podUid)
    if (watched?.state.isBehind) watched.pod.setBehind(false)
  }

  close(): void {
    clearInterval(this.#timer)
    for (const podUid of [...this.#pods.keys()]) this.forget(podUid)
  }
}
