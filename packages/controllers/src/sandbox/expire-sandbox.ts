import { isControlledBy, isNotFound, Sandboxes } from '@corral/resources'
import type { ReconcileResult } from '@corral/runtime'
import { combineErrors } from '../shared/error-text.js'
import { expiredStatus, immediatelyMs, isMarkedExpired, markExpired } from './expiry.js'
import { performStep } from './perform.js'
import { podNameOf } from './pod-plan.js'
import type { SandboxPorts } from './ports.js'
import { type ReconcileContext, writeStatus } from './reconcile-context.js'

/** Ends a Sandbox whose time is up: first its status says so, on a later pass its children or all of it go. */
export async function expireSandbox(context: ReconcileContext, ports: SandboxPorts): Promise<ReconcileResult> {
  const { key, sandbox, signal } = context
  const { client, state, clock } = ports
  const generation = sandbox.metadata.generation ?? 0
  if (!isMarkedExpired(sandbox)) {
    const errors = await writeStatus(context, markExpired(sandbox.status ?? {}, generation, clock.now()), ports)
    if (errors.length > 0) throw combineErrors(errors)
    return { requeueAfterMs: immediatelyMs }
  }

  const namespace = sandbox.metadata.namespace ?? ''
  const pod = state.pods.get(`${namespace}/${podNameOf(sandbox)}`)
  const service = state.services.get(key)
  const children = { found: undefined, actions: [] as Parameters<typeof performStep>[0]['actions'] }
  const errors: unknown[] = []
  for (const [child, object] of [
    ['pod', pod],
    ['service', service],
  ] as const) {
    if (!object || !isControlledBy(object, sandbox) || object.metadata.deletionTimestamp) continue
    const action = { kind: 'delete', child, name: object.metadata.name, missingIsFine: true } as const
    const step = { ...children, actions: [{ ...action, failure: `failed to delete ${child}` }] }
    errors.push(...(await performStep(step, sandbox, ports, signal)).errors)
  }
  if (sandbox.spec.shutdownPolicy === 'Delete') {
    try {
      await client.delete(Sandboxes, { name: sandbox.metadata.name, namespace }, { signal })
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
