import { setTimeout as sleep } from 'node:timers/promises'
import type { Probe } from '@corral/resources'
import { type HandlerContext, runHandler } from './handler.js'
import {
  mayLookEarly,
  newProbeState,
  nextProbeDelayMs,
  type ProbeKind,
  type ProbeState,
  stepProbe,
} from './probe-state.js'

export interface ProbeLoopOptions {
  kind: ProbeKind
  probe: Probe
  context: Omit<HandlerContext, 'timeoutMs' | 'signal'>
  signal: AbortSignal
  /** Milliseconds the container has been up, so that a restarted node does not wait the initial delay again. */
  upForMs: number
  /** Every change of the verdict, and with it the message of the last failure. */
  onVerdict(verdict: 'success' | 'failure', message: string): void
  /** Every failed look that counts. */
  onFailure(message: string): void
  /** True ends the loop after this verdict: a startup probe has done its work. */
  endsOn?: 'success'
}

/** Looks at the container again and again until `signal` aborts. Settles after the last look has ended. */
export async function probeLoop(options: ProbeLoopOptions): Promise<void> {
  const { kind, probe, signal } = options
  let state: ProbeState = newProbeState
  let earlyTries = 0
  try {
    await sleep(Math.max(0, (probe.initialDelaySeconds ?? 0) * 1000 - options.upForMs), undefined, { signal })
    let periodBegan = performance.now()
    let isEarly = !probe.initialDelaySeconds && mayLookEarly(kind, probe, state)
    while (!signal.aborted) {
      const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000
      const result = await runHandler(probe, { ...options.context, timeoutMs, signal })
      if (signal.aborted) return
      if (result.ok || !isEarly) {
        const next = stepProbe(state, probe, result.ok ? 'success' : 'failure')
        if (!result.ok) options.onFailure(result.message)
        if (next.verdict && next.verdict !== state.verdict) options.onVerdict(next.verdict, result.message)
        state = next
        if (options.endsOn && state.verdict === options.endsOn) return
      }
      const wait = nextProbeDelayMs(kind, probe, state, earlyTries, performance.now() - periodBegan)
      isEarly = wait.isEarly
      earlyTries = isEarly ? earlyTries + 1 : earlyTries
      await sleep(wait.delayMs, undefined, { signal })
      if (!isEarly) periodBegan = performance.now()
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
