import type { CpuUse } from './cgroups.js'

/** A pod that can be put behind the others. */
export interface OrderedPod {
  podUid: string
  /** Its CPU request, in thousandths of a processor. */
  requestMillis: number
  /** Processor time of its processes so far; `undefined` where the kernel does not count it. */
  used(): CpuUse | undefined
  /** Whether its processes run only while those of no other pod want to. */
  setBehind(isBehind: boolean): void
  /** Whether its processes leave some of the processors to others. Safe to repeat. */
  setApart(isApart: boolean): void
}

export interface CpuLook extends CpuUse {
  atMs: number
}

export interface CpuOrderState {
  isBehind: boolean
  last: CpuLook
  /** Looks in a row that found it above its request, and not above it. */
  above: number
  below: number
  /** Whether it spends most of its time in the kernel, and looks in a row that found so, and not so. */
  isInKernel: boolean
  inKernel: number
  outside: number
  /** Looks in a row in which it did next to nothing. */
  resting: number
}

const looksAbove = 2
/** The start of a pod, of a daemon for example, is above any small request; so many looks of it do not count. */
const looksOfStart = 2
/** Long enough that a pod whose pauses are shorter stays behind; short enough that one that starves gets its request. */
const looksBelow = 6

/** A share of a processor below which a pod rests. */
const restingShare = 0.01

/** A pod at its start. */
export function cpuOrderStart(last: CpuLook): CpuOrderState {
  const looks = { above: -looksOfStart, below: 0, inKernel: -looksOfStart, outside: 0, resting: 0 }
  return { isBehind: false, isInKernel: false, last, ...looks }
}

/** What a look at a pod leads to. Pure. */
export function cpuOrderStep(state: CpuOrderState, look: CpuLook, requestMillis: number): CpuOrderState {
  const spanMs = look.atMs - state.last.atMs
  const usedMs = look.usedMs - state.last.usedMs
  const allowedMs = (spanMs * requestMillis) / 1000
  const isAbove = usedMs > allowedMs
  const above = isAbove ? state.above + 1 : 0
  const below = isAbove ? 0 : state.below + 1
  const isBehind = state.isBehind ? below < looksBelow : above >= looksAbove
  // Kept to a part of the processors it gets less: that alone does not end it.
  const isMuch = state.isInKernel ? usedMs > allowedMs / 2 : isAbove
  const isKernel = isMuch && look.kernelMs - state.last.kernelMs > usedMs / 2
  const inKernel = isKernel ? state.inKernel + 1 : 0
  const outside = isKernel ? 0 : state.outside + 1
  const isInKernel = state.isInKernel ? outside < looksBelow : inKernel >= looksAbove
  const resting = usedMs < spanMs * restingShare ? state.resting + 1 : 0
  return { isBehind, isInKernel, last: look, above, below, inKernel, outside, resting }
}

/** Whether pods that are busy in the kernel have to leave room: for one that works and is not so busy itself. Pure. */
export function isRoomWanted(states: Iterable<CpuOrderState>): boolean {
  for (const { isInKernel, resting } of states) if (!isInKernel && resting < looksBelow) return true
  return false
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
 *
 * A kernel without preemption ends a system call before it lets go, of an idle group too: with one such call on each processor
 * (a write of many megabytes, the memory of a process that ends) another pod waits 10 to 20 ms for its turn. So pods that spend
 * most of their time in the kernel keep to a part of the processors while others work. Alone they have all of them.
 */
export class CpuOrder {
  readonly #pods = new Map<string, { pod: OrderedPod; state: CpuOrderState; isApart: boolean }>()
  readonly #timer: NodeJS.Timeout

  constructor(private readonly options: CpuOrderOptions) {
    this.#timer = setInterval(() => this.look(), options.everyMs).unref()
  }

  /** Again with another request for the same pod: it starts at the front. */
  watch(pod: OrderedPod): void {
    this.forget(pod.podUid)
    const used = pod.used()
    if (!used) return
    const state = cpuOrderStart({ ...used, atMs: this.options.nowMs() })
    this.#pods.set(pod.podUid, { pod, state, isApart: false })
  }

  look(): void {
    for (const watched of this.#pods.values()) {
      const { pod, state } = watched
      const used = pod.used()
      if (!used) continue
      watched.state = cpuOrderStep(state, { ...used, atMs: this.options.nowMs() }, pod.requestMillis)
      if (watched.state.isBehind !== state.isBehind) pod.setBehind(watched.state.isBehind)
    }
    const isWanted = isRoomWanted([...this.#pods.values()].map(({ state }) => state))
    for (const watched of this.#pods.values()) {
      const isApart = isWanted && watched.state.isInKernel
      // Again at each look: a container that started meanwhile may have kept the groups from being changed.
      if (isApart || watched.isApart) watched.pod.setApart(isApart)
      watched.isApart = isApart
    }
  }

  /** Back to the front, and no longer looked at: before a pod ends, which its processes have to run for. */
  forget(podUid: string): void {
    const watched = this.#pods.get(podUid)
    this.#pods.delete(podUid)
    if (watched?.state.isBehind) watched.pod.setBehind(false)
    if (watched?.isApart) watched.pod.setApart(false)
  }

  close(): void {
    clearInterval(this.#timer)
    for (const podUid of [...this.#pods.keys()]) this.forget(podUid)
  }
}
