import { isNotFound, podNameOf, Sandboxes } from '@corral/resources'
import type { ReconcileResult } from '@corral/runtime'
import { combineErrors } from '../shared/error-text.js'
import { expiredStatus, immediatelyMs, markExpired, planExpiry } from './expiry.js'
import { performStep } from './perform.js'
import type { SandboxPorts } from './ports.js'
import { type ReconcileContext, writeStatus } from './reconcile-context.js'

/** Carries out what `planExpiry` says. A child that cannot be deleted keeps neither the other nor the Sandbox. */
export async function expireSandbox(context: ReconcileContext, ports: SandboxPorts): Promise<ReconcileResult> {
  const { key, sandbox, signal } = context
  const { client, state, clock } = ports
  const { name, namespace = '', generation = 0 } = sandbox.metadata
  const pod = state.pods.get(`${namespace}/${podNameOf(sandbox)}`)
  const plan = planExpiry({ sandbox, pod, service: state.services.get(key) })
  if (plan.move === 'mark') {
    const errors = await writeStatus(context, markExpired(sandbox.status ?? {}, generation, clock.now()), ports)
    if (errors.length > 0) throw combineErrors(errors)
    return { requeueAfterMs: immediatelyMs }
  }
  const errors: unknown[] = []
  for (const action of plan.deletes) {
    const step = { found: undefined, actions: [action] }
    errors.push(...(await performStep(step, sandbox, ports, signal)).errors)
  }
  if (plan.deletesItself) {
    try {
      await client.delete(Sandboxes, { name, namespace }, { signal })
      return {}
    } catch (error) {
      if (isNotFound(error)) return {}
      errors.push(error)
    }
  } else if (errors.length === 0) {
    errors.push(...(await writeStatus(context, expiredStatus(sandbox.status ?? {}, generation, clock.now()), ports)))
  }
  if (errors.length > 0) throw combineErrors(errors)
  return {}
}
