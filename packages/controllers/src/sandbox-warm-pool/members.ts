import {
  controllerOf,
  isConditionTrue,
  nameHash,
  type Pod,
  type Sandbox,
  type SandboxTemplate,
  type SandboxWarmPool,
  type Stored,
} from '@corral/resources'
import { sameBlueprint, templateHashes } from '../shared/blueprint.js'
import { labels } from '../shared/names.js'

export interface PoolWorld {
  pool: Stored<SandboxWarmPool>
  /** Sandboxes of the namespace that carry the pool's label. */
  listed: readonly Stored<Sandbox>[]
  template: Stored<SandboxTemplate> | undefined
  /** A delete of ours that the watch has not confirmed yet. */
  isBeingDeleted(uid: string): boolean
  findPod(sandbox: Stored<Sandbox>): Stored<Pod> | undefined
  now: Date
  readinessGraceMs: number
  /** Members behind scheduling gates are left alone. */
  sparesGated?: boolean
}

export interface Members {
  active: Stored<Sandbox>[]
  terminatingCount: number
  /** Made from another template: to be deleted. */
  stale: Stored<Sandbox>[]
  /** Ours, without the launch type. */
  unlabelled: Stored<Sandbox>[]
  /** Without an owner, with our label and our content: to be adopted. */
  orphans: Stored<Sandbox>[]
  staleOrphans: Stored<Sandbox>[]
}

/** Sorts the listed Sandboxes into what the pool has to do about them. */
export function classifyMembers(world: PoolWorld): Members {
  const { pool, template } = world
  const members: Members = { active: [], terminatingCount: 0, stale: [], unlabelled: [], orphans: [], staleOrphans: [] }
  const recreates = pool.spec.updateStrategy?.type === 'Recreate'
  const isStale = template && staleness(template)
  for (const sandbox of world.listed) {
    const controller = controllerOf(sandbox)
    const isOurs = controller?.uid === pool.metadata.uid
    if (sandbox.metadata.deletionTimestamp || (isOurs && world.isBeingDeleted(sandbox.metadata.uid))) {
      if (isOurs) members.terminatingCount += 1
    } else if (controller && !isOurs) {
      // Carries our label but has another owner.
    } else if (isStale && (recreates || !isOurs) && isStale(sandbox, isOurs)) {
      ;(isOurs ? members.stale : members.staleOrphans).push(sandbox)
    } else if (!isOurs) members.orphans.push(sandbox)
    else if (sandbox.metadata.labels?.[labels.launchType] !== 'warm') members.unlabelled.push(sandbox)
    else members.active.push(sandbox)
  }
  return members
}

/** Any client may have written an orphan's hash label, so its content is compared; ours are compared once per hash. */
function staleness(template: Stored<SandboxTemplate>): (sandbox: Stored<Sandbox>, isOurs: boolean) => boolean {
  const refHash = nameHash(template.metadata.name)
  const { blueprint } = templateHashes(template)
  const judged = new Map<string, boolean>()
  return (sandbox, isOurs) => {
    const own = sandbox.metadata.labels ?? {}
    if (own[labels.templateRefHash] !== refHash) return true
    if (!isOurs) return !sameBlueprint(template, sandbox)
    const hash = own[labels.templateHash] ?? ''
    if (hash === blueprint) return false
    const known = judged.get(hash)
    if (known !== undefined) return known
    const stale = !sameBlueprint(template, sandbox)
    judged.set(hash, stale)
    return stale
  }
}

export interface Stuck {
  /** Not Ready for longer than the grace period: to be replaced. */
  stuck: Stored<Sandbox>[]
  /** Past the grace period too, but a replacement would not be scheduled either. */
  unschedulableCount: number
  /** When the next member runs out of its grace. */
  nextDeadlineMs?: number
}

const deadlineSlackMs = 2_000

/** Finds members that will not become Ready by waiting. */
export function findStuck(active: readonly Stored<Sandbox>[], world: PoolWorld): Stuck {
  const result: Stuck = { stuck: [], unschedulableCount: 0 }
  for (const sandbox of active) {
    if (isConditionTrue(sandbox.status?.conditions, 'Ready')) continue
    const createdAtMs = Date.parse(sandbox.metadata.creationTimestamp)
    if (Number.isNaN(createdAtMs)) continue
    const ageMs = world.now.getTime() - createdAtMs
    if (ageMs <= world.readinessGraceMs) {
      const inMs = world.readinessGraceMs - ageMs + deadlineSlackMs
      result.nextDeadlineMs = Math.min(inMs, result.nextDeadlineMs ?? inMs)
    } else if (isHeldBack(world.findPod(sandbox), 'Unschedulable')) result.unschedulableCount += 1
    else if (!(world.sparesGated && isHeldBack(world.findPod(sandbox), 'SchedulingGated'))) result.stuck.push(sandbox)
  }
  return result
}

function isHeldBack(pod: Stored<Pod> | undefined, reason: 'Unschedulable' | 'SchedulingGated'): boolean {
  if (!pod || pod.metadata.deletionTimestamp) return false
  const scheduled = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled')
  return scheduled?.status === 'False' && scheduled.reason === reason
}

/** Members to give up first when there are too many: those not Ready, then the youngest. */
export function excessMembers(active: readonly Stored<Sandbox>[], count: number): Stored<Sandbox>[] {
  const ranked = active.map((sandbox) => ({
    sandbox,
    isReady: isConditionTrue(sandbox.status?.conditions, 'Ready'),
    createdAtMs: Date.parse(sandbox.metadata.creationTimestamp),
  }))
  ranked.sort((a, b) => Number(a.isReady) - Number(b.isReady) || b.createdAtMs - a.createdAtMs)
  return ranked.slice(0, count).map(({ sandbox }) => sandbox)
}
