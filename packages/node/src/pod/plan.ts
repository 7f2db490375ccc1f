import type { PodSpec } from '@corral/resources'
import { type ContainerState, type RoledContainer, rolesOf, type StopCause } from '../records/container-state.js'
import { restartAtMs } from './restart-backoff.js'

/** Everything the decision about a pod needs to know. */
export interface PodWorld {
  spec: PodSpec
  containers: ReadonlyMap<string, ContainerState>
  /** When the node took the pod over. */
  startTime: string
  /** The object is being deleted, or is already gone. */
  deletion?: { graceSeconds: number; objectGone: boolean } | undefined
  /** The pod as a whole has failed: refused, out of time, evicted. */
  failure?: { reason: string; message: string } | undefined
  prepared: boolean
  /** The image whose root its container is to have; undefined leaves it as it runs. */
  image?: string | undefined
  now: Date
}

export type PodAction =
  | { kind: 'prepare' }
  | { kind: 'start'; container: string; attempt: number }
  | { kind: 'stop'; container: string; graceSeconds: number; cause: StopCause }
  | { kind: 'fail'; reason: string; message: string }
  | { kind: 'release' }
  | { kind: 'deleteObject' }

export interface PodDecision {
  actions: PodAction[]
  /** Nothing changes by itself before this time has passed. */
  requeueAfterMs?: number
}

/** One that takes too much of the disk would use its grace period to take more; one that is sealed has done its work. */
const endsAtOnce = new Set(['Evicted', 'Sealed'])
const deadlineMessage = 'Pod was active on the node longer than the specified deadline'

/** What the pod needs next. Pure: everything it knows is in `world`, including the time. */
export function planPod(world: PodWorld): PodDecision {
  const roles = rolesOf(world.spec)
  const grace = world.spec.terminationGracePeriodSeconds ?? 30

  if (world.deletion) return planDeletion(world, roles)
  if (world.failure) return planEnd(world, roles, 'PodFailed', endsAtOnce.has(world.failure.reason) ? 0 : grace)

  const leftMs = deadlineLeftMs(world)
  if (leftMs !== undefined && leftMs <= 0 && !isSettled(world, roles)) {
    return { actions: [{ kind: 'fail', reason: 'DeadlineExceeded', message: deadlineMessage }] }
  }
  if (isSettled(world, roles)) return planEnd(world, roles, 'PodFinished', grace)
  if (!world.prepared) return { actions: [{ kind: 'prepare' }] }

  return soonest(planContainers(world, roles, grace), leftMs)
}

/**
 * Whether the pod's work is over by its restart policy: every main container has ended for good, or an init container
 * failed where nothing restarts it. Sidecars do not keep a pod alive.
 */
export function isSettled(world: Pick<PodWorld, 'spec' | 'containers'>, roles: RoledContainer[]): boolean {
  const state = (entry: RoledContainer): ContainerState | undefined => world.containers.get(entry.container.name)
  const policy = world.spec.restartPolicy ?? 'Always'
  const isFailedInit = roles.some((entry) => {
    const exit = state(entry)?.run ? undefined : state(entry)?.exit
    return entry.role === 'init' && policy === 'Never' && exit !== undefined && exit.exitCode !== 0
  })
  if (isFailedInit) return true
  return roles
    .filter((entry) => entry.role === 'main')
    .every((entry) => {
      const own = state(entry)
      return own !== undefined && !own.run && own.exit !== undefined && !restartsAfter(policy, own.exit.exitCode)
    })
}

/** It ended by itself, and what the node held for it is released. */
export function isWorkOver(world: PodWorld): boolean {
  return !world.prepared && !world.failure && isSettled(world, rolesOf(world.spec))
}

function planContainers(world: PodWorld, roles: RoledContainer[], grace: number): PodDecision {
  const decisions: PodDecision[] = []
  for (const entry of roles) {
    const state = world.containers.get(entry.container.name)
    if (!state) continue
    if (entry.role === 'init' && !state.run && state.exit?.exitCode === 0) continue
    decisions.push(planContainer(world, entry, state, grace))
    const holdsBack = entry.role === 'init' || (entry.role === 'sidecar' && !(state.run && state.started))
    if (holdsBack) break
  }
  return merge(decisions)
}

function planContainer(world: PodWorld, entry: RoledContainer, state: ContainerState, grace: number): PodDecision {
  const container = entry.container.name
  const nowMs = world.now.getTime()
  if (state.run) {
    if (state.stopping) return { actions: [] }
    if (world.image !== undefined && world.image !== (state.image ?? ''))
      return { actions: [{ kind: 'stop', container, graceSeconds: grace, cause: 'ImageChanged' }] }
    if (!state.unhealthy) return { actions: [] }
    const graceSeconds = state.unhealthy.graceSeconds ?? grace
    return { actions: [{ kind: 'stop', container, graceSeconds, cause: 'Unhealthy' }] }
  }
  const policy = entry.role === 'sidecar' ? 'Always' : (world.spec.restartPolicy ?? 'Always')
  if (state.exit && !restartsAfter(policy, state.exit.exitCode)) return { actions: [] }
  const startAtMs = state.waiting ? Date.parse(state.waiting.retryAt) : restartAtMs(state)
  if (startAtMs > nowMs) return { actions: [], requeueAfterMs: startAtMs - nowMs }
  return { actions: [{ kind: 'start', container, attempt: state.launched }] }
}

function planDeletion(world: PodWorld, roles: RoledContainer[]): PodDecision {
  const deletion = world.deletion!
  const end = planEnd(world, roles, 'PodDeleted', deletion.graceSeconds)
  const isOver = end.actions.length === 0 && !anyRunning(world)
  if (!isOver || deletion.objectGone) return end
  return { actions: [{ kind: 'deleteObject' }] }
}

/** Main and init containers stop together; sidecars follow one by one, the last started first. */
function planEnd(world: PodWorld, roles: RoledContainer[], cause: StopCause, graceSeconds: number): PodDecision {
  const running = roles.filter((entry) => world.containers.get(entry.container.name)?.run)
  const first = running.filter((entry) => entry.role !== 'sidecar')
  const toStop = first.length > 0 ? first : running.slice(-1)
  const actions = toStop
    .filter((entry) => stopsSooner(world.containers.get(entry.container.name), graceSeconds, world.now))
    .map((entry): PodAction => ({ kind: 'stop', container: entry.container.name, graceSeconds, cause }))
  if (running.length === 0 && world.prepared) return { actions: [{ kind: 'release' }] }
  return { actions }
}

/** A second, more hurried request to stop shortens the grace period; a slower one changes nothing. */
function stopsSooner(state: ContainerState | undefined, graceSeconds: number, now: Date): boolean {
  if (!state?.stopping) return true
  return Date.parse(state.stopping.deadline) - now.getTime() > graceSeconds * 1000 + 500
}

function anyRunning(world: PodWorld): boolean {
  return [...world.containers.values()].some((state) => state.run !== undefined)
}

function restartsAfter(policy: string, exitCode: number): boolean {
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0)
}

function deadlineLeftMs(world: PodWorld): number | undefined {
  const seconds = world.spec.activeDeadlineSeconds
  if (seconds === undefined) return undefined
  return Date.parse(world.startTime) + seconds * 1000 - world.now.getTime()
}

function merge(decisions: PodDecision[]): PodDecision {
  const waits = decisions.flatMap((decision) => decision.requeueAfterMs ?? [])
  const actions = decisions.flatMap((decision) => decision.actions)
  return waits.length > 0 ? { actions, requeueAfterMs: Math.min(...waits) } : { actions }
}

function soonest(decision: PodDecision, otherMs: number | undefined): PodDecision {
  if (otherMs === undefined) return decision
  return { ...decision, requeueAfterMs: Math.min(decision.requeueAfterMs ?? otherMs, otherMs) }
}
