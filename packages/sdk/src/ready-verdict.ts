import { type Readiness, readinessOf } from './readiness.js'
import { SandboxError } from './sandbox-error.js'
import type { Verdict } from './wait-for.js'

/** Judges an object by its conditions. */
export function readyVerdict(
  kind: string,
  name: string,
): (object: { status?: { conditions?: Parameters<typeof readinessOf>[0] } }) => Verdict {
  return (object) => {
    const readiness: Readiness = readinessOf(object.status?.conditions)
    if (readiness.state === 'ready') return { done: true }
    const why = `${readiness.reason}: ${readiness.message}`
    if (readiness.state === 'waiting') return { done: false, why }
    const details = { reason: readiness.reason }
    return { done: false, failure: new SandboxError('SandboxFailed', `${kind} "${name}" failed: ${why}`, { details }) }
  }
}
