import type { ContainerState, FinishedRun } from '../records/container-state.js'

const firstDelayMs = 10_000
const longestDelayMs = 300_000
const lastedMs = 600_000

/** How long the next start waits after `crashes` short runs: at once, then 10 s doubling to 5 min. */
export function restartDelayMs(crashes: number): number {
  if (crashes <= 1) return 0
  return Math.min(firstDelayMs * 2 ** (crashes - 2), longestDelayMs)
}

/** The number of crashes after this run ended: a run of ten minutes forgives the ones before it. */
export function crashesAfter(previous: number, run: Pick<FinishedRun, 'startedAt' | 'finishedAt'>): number {
  const lasted = Date.parse(run.finishedAt) - Date.parse(run.startedAt) >= lastedMs
  return lasted ? 1 : previous + 1
}

/** When a container that ended may start again, in milliseconds since the epoch. */
export function restartAtMs(state: ContainerState): number {
  if (!state.exit) return 0
  return Date.parse(state.exit.finishedAt) + restartDelayMs(state.crashes)
}
