import type { AgentTask } from '@corral/resources'
import { poolOf } from './agent-task/claim.js'

/** What the tasks of some time say about one pool. */
export interface PoolAdvice {
  readonly pool: string
  /** Tasks that asked for a sandbox of it. */
  readonly tasks: number
  /** The share of them that had one at once. */
  readonly hitRatio: number
  /** How long the slowest of twenty waited for a sandbox. */
  readonly waitP95Seconds: number
  /** How long a sandbox takes that is not there yet, as seen from those that waited. */
  readonly coldSeconds: number
  /** Sandboxes to keep ready, so that nineteen of twenty tasks find one. */
  readonly replicas: number
}

/** A warm sandbox is there within this time; a task that waited longer got a cold one. */
const warmMs = 1_000
/** Assumed where no task waited: what the start of a small image takes. */
const presumedColdMs = 10_000

/** How many sandboxes each pool should keep ready, from the tasks that started since. Pure. */
export function advisePools(tasks: readonly AgentTask[], since: Date): PoolAdvice[] {
  const byPool = new Map<string, { startedMs: number; waitMs: number }[]>()
  for (const task of tasks) {
    const { provisioningAt, sandboxReadyAt } = task.status?.times ?? {}
    if (!provisioningAt || !sandboxReadyAt || Date.parse(provisioningAt) < since.getTime()) continue
    const startedMs = Date.parse(provisioningAt)
    const { name } = poolOf(task)
    const starts = byPool.get(name) ?? []
    starts.push({ startedMs, waitMs: Math.max(0, Date.parse(sandboxReadyAt) - startedMs) })
    byPool.set(name, starts)
  }
  return [...byPool].sort(([a], [b]) => a.localeCompare(b)).map(([pool, starts]) => adviceFor(pool, starts))
}

function adviceFor(pool: string, starts: readonly { startedMs: number; waitMs: number }[]): PoolAdvice {
  const cold = starts.filter(({ waitMs }) => waitMs > warmMs).map(({ waitMs }) => waitMs)
  const coldMs = cold.length === 0 ? presumedColdMs : quantile(cold, 0.5)
  // While a sandbox is taken its successor is on its way: what starts meanwhile needs sandboxes of its own.
  const at = starts.map(({ startedMs }) => startedMs)
  const together = at.map((end) => at.filter((start) => start <= end && start > end - coldMs).length)
  return {
    pool,
    tasks: starts.length,
    hitRatio: (starts.length - cold.length) / starts.length,
    waitP95Seconds:
      quantile(
        starts.map(({ waitMs }) => waitMs),
        0.95,
      ) / 1000,
    coldSeconds: coldMs / 1000,
    replicas: quantile(together, 0.95),
  }
}

/** The smallest value that this share of the values does not exceed. */
function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
}
