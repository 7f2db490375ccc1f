import type { Probe } from '@corral/resources'

export type ProbeKind = 'startup' | 'readiness' | 'liveness'

/** Where a probe stands: its verdict and the run of equal results it has just seen. */
export interface ProbeState {
  /** Undefined until a threshold has been reached for the first time. */
  verdict?: 'success' | 'failure'
  lastResult?: 'success' | 'failure'
  inARow: number
}

export const newProbeState: ProbeState = { inARow: 0 }

/** The state after one more result: the verdict changes only after the probe's threshold of equal results. */
export function stepProbe(state: ProbeState, probe: Probe, result: 'success' | 'failure'): ProbeState {
  const inARow = state.lastResult === result ? state.inARow + 1 : 1
  const threshold = result === 'success' ? (probe.successThreshold ?? 1) : (probe.failureThreshold ?? 3)
  const verdict = inARow >= threshold ? result : state.verdict
  return { lastResult: result, inARow, ...(verdict ? { verdict } : {}) }
}

const firstRetryMs = 50

/**
 * When to look again. Before its first success a network probe is also tried between two periods: an early success
 * counts, an early failure does not, so a server that is up after 80 ms is not kept waiting for ten seconds.
 */
export function nextProbeDelayMs(
  kind: ProbeKind,
  probe: Probe,
  state: ProbeState,
  earlyTries: number,
  sincePeriodMs: number,
): {
  delayMs: number
  isEarly: boolean
} {
  const leftMs = Math.max(0, (probe.periodSeconds ?? 10) * 1000 - sincePeriodMs)
  const earlyMs = firstRetryMs * 2 ** earlyTries
  if (mayLookEarly(kind, probe, state) && earlyMs < leftMs) return { delayMs: earlyMs, isEarly: true }
  return { delayMs: leftMs, isEarly: false }
}

/** Whether a failed look may go uncounted: the server is still coming up, and asking costs no process. */
export function mayLookEarly(kind: ProbeKind, probe: Probe, state: ProbeState): boolean {
  return kind !== 'liveness' && !probe.exec && state.verdict !== 'success' && state.lastResult !== 'success'
}
