import type { PodUsage } from './pod-usage.js'
import { exceededLimit, quantityText, type StorageLimits } from './storage-limits.js'

/** The disk of the pods, with the marks below which something has to happen. */
export interface DiskState {
  freeBytes: number
  freeInodes: number
  /** Below these, pods are evicted until there is room again. */
  lowBytes: number
  lowInodes: number
  /** Size of the reserve file, and whether it is there. */
  reserveBytes: number
  /** Inodes that it keeps back as well. */
  reserveInodes: number
  hasReserve: boolean
}

export interface DiskPod {
  uid: string
  /** Its containers with what they request, for the message. */
  containers: readonly { name: string; request: string }[]
  limits: StorageLimits
  /** The last measurement, and whether it is from after the disk became low. */
  usage?: PodUsage | undefined
  isFresh: boolean
  /** Only the main processes of its containers are left: since when and why. */
  halted?: { atMs: number; message: string } | undefined
  /** Nothing of it runs any more, for good. */
  isOver: boolean
  /** Its files are removed already. */
  isCleared: boolean
}

export type DiskAction =
  | { kind: 'halt' | 'evict'; uid: string; message: string }
  | { kind: 'clear' | 'measure'; uid: string }
  | { kind: 'releaseReserve' | 'restoreReserve' }

export interface DiskWorld {
  nowMs: number
  disk: DiskState
  wasUnderPressure: boolean
  pods: readonly DiskPod[]
}

export interface DiskDecision {
  actions: DiskAction[]
  isUnderPressure: boolean
}

/** While the work of a halted pod is taken out it may grow by this much. */
const collectingSlack = 1.25
/** A pod that takes less than this part of the missing room is left alone: its end would not help. */
const worthwhilePart = 1 / 8

/** Who has to go, and what else makes room. Pure: everything it knows is in `world`, including the time. */
export function planDisk(world: DiskWorld): DiskDecision {
  const limited = world.pods.filter(({ isOver }) => !isOver).flatMap((pod) => planPodLimit(pod, world.nowMs))
  const isUnderPressure = isLow(world.disk) || (world.wasUnderPressure && !hasRecovered(world.disk))
  if (isLow(world.disk)) {
    const going = new Set(limited.flatMap((action) => ('uid' in action ? action.uid : [])))
    return { actions: [...limited, ...planPressure(world, going)], isUnderPressure }
  }
  const restore: DiskAction[] = !world.disk.hasReserve && hasRecovered(world.disk) ? [{ kind: 'restoreReserve' }] : []
  return { actions: [...limited, ...restore], isUnderPressure }
}

/** The pod's own limits: first its processes go, then, once its grace is over or it grows further, the pod. */
function planPodLimit(pod: DiskPod, nowMs: number): DiskAction[] {
  const { uid, limits, usage, halted } = pod
  if (halted) {
    const isTooMuch = usage !== undefined && exceededLimit(limits, usage, collectingSlack) !== undefined
    const isOut = nowMs >= halted.atMs + limits.graceMs
    return isOut || isTooMuch ? [{ kind: 'evict', uid, message: halted.message }] : []
  }
  const message = usage && exceededLimit(limits, usage)
  return message ? [leave(pod, message)] : []
}

function planPressure({ disk, pods }: DiskWorld, going: ReadonlySet<string>): DiskAction[] {
  const leftovers = pods.filter(({ isOver, isCleared }) => isOver && !isCleared)
  const release: DiskAction[] = disk.hasReserve && isCritical(disk) ? [{ kind: 'releaseReserve' }] : []
  if (leftovers.length > 0) {
    return [...leftovers.map(({ uid }): DiskAction => ({ kind: 'clear', uid })), ...release]
  }
  const running = pods.filter(({ isOver, uid }) => !isOver && !going.has(uid))
  const halted = running.flatMap(({ uid, halted: why }) => (why ? [{ uid, message: why.message }] : []))
  if (going.size > 0 || halted.length > 0) {
    // The reserve comes after the writers have gone; with it used up as well there is no time left to take work out.
    const isOut = !disk.hasReserve && isUsedUp(disk)
    return [...(isOut ? halted.map((pod): DiskAction => ({ kind: 'evict', ...pod })) : []), ...release]
  }
  const unknown = running.filter(({ isFresh }) => !isFresh)
  if (unknown.length > 0) return unknown.map(({ uid }) => ({ kind: 'measure', uid }))
  const victim = largest(running, disk)
  return [...(victim ? [leave(victim, pressureMessage(victim, disk))] : []), ...release]
}

function leave({ uid, limits }: DiskPod, message: string): DiskAction {
  return { kind: limits.graceMs > 0 ? 'halt' : 'evict', uid, message }
}

function largest(pods: readonly DiskPod[], disk: DiskState): DiskPod | undefined {
  const [measure, worthwhile]: [(pod: DiskPod) => number, number] =
    disk.freeBytes < disk.lowBytes
      ? [(pod) => pod.usage?.total.bytes ?? 0, disk.lowBytes * worthwhilePart]
      : [(pod) => pod.usage?.total.inodes ?? 0, disk.lowInodes * worthwhilePart]
  const candidates = pods.filter((pod) => measure(pod) >= worthwhile)
  return candidates.sort((a, b) => measure(b) - measure(a))[0]
}

/** As the kubelet tells the owner of a pod it evicts for the node's sake. */
function pressureMessage({ containers, usage }: DiskPod, disk: DiskState): string {
  const isBytes = disk.freeBytes < disk.lowBytes
  const resource = isBytes ? 'ephemeral-storage' : 'inodes'
  const amount = (bytes: number, inodes: number): string => (isBytes ? roundedText(bytes) : String(inodes))
  const threshold = amount(disk.lowBytes, disk.lowInodes)
  const available = amount(disk.freeBytes, disk.freeInodes)
  const [container] = containers
  const used = amount(usage?.total.bytes ?? 0, usage?.total.inodes ?? 0)
  return (
    `The node was low on resource: ${resource}. Threshold quantity: ${threshold}, available: ${available}. ` +
    `Container ${container?.name} was using ${used}, request is ${container?.request}, ` +
    `has larger consumption of ${resource}.`
  )
}

/** The kubelet's unit: whole kibibytes. */
const roundedText = (bytes: number): string => quantityText(Math.floor(bytes / 1024) * 1024)

function isLow({ freeBytes, freeInodes, lowBytes, lowInodes }: DiskState): boolean {
  return freeBytes < lowBytes || freeInodes < lowInodes
}

function isCritical({ freeBytes, freeInodes, lowBytes, lowInodes }: DiskState): boolean {
  return freeBytes < lowBytes / 2 || freeInodes < lowInodes / 2
}

/** Of what the reserve gave back, too little is left to go on with. */
function isUsedUp({ freeBytes, freeInodes, lowBytes, reserveInodes }: DiskState): boolean {
  return freeBytes < lowBytes / 2 || freeInodes < reserveInodes / 8
}

/** Room for the reserve as well, so that making it does not bring the trouble back. */
function hasRecovered({ freeBytes, freeInodes, lowBytes, lowInodes, ...disk }: DiskState): boolean {
  const { reserveBytes, reserveInodes, hasReserve } = disk
  return (
    freeBytes >= 2 * lowBytes + (hasReserve ? 0 : reserveBytes) &&
    freeInodes >= 2 * lowInodes + (hasReserve ? 0 : reserveInodes)
  )
}
