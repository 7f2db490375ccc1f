import type { Condition } from '@corral/resources'

/** Reasons after which a sandbox or claim does not become ready any more. */
export const terminalReasons: ReadonlySet<string> = new Set([
  'TemplateNotFound',
  'WarmPoolNotFound',
  'InvalidMetadata',
  'EnvVarsInjectionRejected',
  'VolumeClaimTemplatesError',
  'ClaimExpired',
  'SandboxExpired',
  'InvalidConfiguration',
  'PodFailed',
  'PodSucceeded',
])

/** Where an object stands on its way to Ready. */
export type Readiness =
  | { readonly state: 'ready' }
  | { readonly state: 'waiting' | 'failed'; readonly reason: string; readonly message: string }

/** What the conditions of a sandbox or claim say. Pure. */
export function readinessOf(conditions: readonly Condition[] | undefined): Readiness {
  const finished = conditions?.find((condition) => condition.type === 'Finished')
  if (finished?.status === 'True') return { state: 'failed', reason: finished.reason, message: finished.message }
  const ready = conditions?.find((condition) => condition.type === 'Ready')
  if (!ready) return { state: 'waiting', reason: 'NoCondition', message: 'the controller has not reported yet' }
  if (ready.status === 'True') return { state: 'ready' }
  const state = terminalReasons.has(ready.reason) ? 'failed' : 'waiting'
  return { state, reason: ready.reason, message: ready.message }
}
