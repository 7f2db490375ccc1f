import type { Sandbox } from '@corral/resources'

const keptMs = 60_000
const maxKept = 100

interface Refusal {
  readonly ageSeconds: number
  readonly untilMs: number
}

/**
 * The pod specs behind which both runtime ports refused connections a moment ago, and how long those pods had been Ready. A
 * sandbox with the same spec that is no older is reached by the kubelet's exec at once, instead of after two port-forwards
 * that lead nowhere. An older one is asked: its daemon may have begun to listen only after the pod was Ready.
 */
export class PlainPods {
  readonly #refusals = new Map<string, Refusal>()

  constructor(private readonly nowMs: () => number = Date.now) {}

  has(sandbox: Sandbox): boolean {
    const refusal = this.#refusals.get(keyOf(sandbox))
    const ageSeconds = this.#readyForSeconds(sandbox)
    if (!refusal || ageSeconds === undefined) return false
    return refusal.untilMs > this.nowMs() && ageSeconds <= refusal.ageSeconds
  }

  add(sandbox: Sandbox): void {
    const key = keyOf(sandbox)
    const ageSeconds = this.#readyForSeconds(sandbox)
    if (ageSeconds === undefined) return
    this.#refusals.delete(key)
    this.#refusals.set(key, { ageSeconds, untilMs: this.nowMs() + keptMs })
    for (const oldest of this.#refusals.keys()) {
      if (this.#refusals.size <= maxKept) return
      this.#refusals.delete(oldest)
    }
  }

  #readyForSeconds(sandbox: Sandbox): number | undefined {
    const forMs = readyForMs(sandbox, this.nowMs())
    return forMs === Number.POSITIVE_INFINITY ? undefined : Math.floor(forMs / 1000)
  }
}

/** How long ago the sandbox became Ready; for ever where it does not say. */
export function readyForMs({ status }: Sandbox, nowMs: number = Date.now()): number {
  const ready = status?.conditions?.find(({ type, status: state }) => type === 'Ready' && state === 'True')
  const sinceMs = Date.parse(ready?.lastTransitionTime ?? '')
  return Number.isNaN(sinceMs) ? Number.POSITIVE_INFINITY : nowMs - sinceMs
}

const keyOf = ({ spec }: Sandbox): string => JSON.stringify(spec.podTemplate.spec)
