import { formatMilliseconds } from '@corral/resources'
import { quote } from '../shared/ownership.js'
import { desiredReplicas } from './plan.js'
import type { PoolReconcileContext } from './reconcile-context.js'

/** Why the pool cannot get fuller by itself, where it cannot. */
export function obstacleText(
  { pool, template, ports: { options } }: PoolReconcileContext,
  unschedulableCount: number,
): string | undefined {
  const desired = desiredReplicas(pool)
  if (unschedulableCount > 0) {
    const grace = formatMilliseconds(options.readinessGraceMs)
    return `${unschedulableCount}/${desired} sandboxes are unschedulable past the ${grace} readiness grace period; holding them instead of replacing (replacements would be equally unschedulable)`
  }
  if (template || desired === 0 || !options.upstreamRelease?.poolWithoutTemplate) return undefined
  return `SandboxTemplate ${quote(pool.spec.sandboxTemplateRef.name)} not found`
}

/** Tells once that the pool is stuck, and once that it no longer is. */
export function reportProgress(context: PoolReconcileContext, obstacle: string | undefined): void {
  const { key, pool, ports, memory } = context
  const was = memory.notProgressing.has(key)
  if (obstacle !== undefined && !was) {
    memory.notProgressing.add(key)
    const note = { action: 'Reconciling', note: obstacle }
    ports.events.record(pool, { type: 'Warning', reason: 'WarmPoolNotProgressing', ...note })
  }
  if (obstacle === undefined && was) {
    memory.notProgressing.delete(key)
    const note = 'Warm pool is progressing again'
    ports.events.record(pool, { type: 'Normal', reason: 'WarmPoolProgressing', action: 'Reconciling', note })
  }
}
