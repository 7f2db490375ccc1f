import {
  isControlledBy,
  isNotFound,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type Stored,
} from '@corral/resources'
import type { ReconcileResult } from '@corral/runtime'
import { errorText } from '../shared/error-text.js'
import { quote } from '../shared/ownership.js'
import { ClaimProblem } from './claim-problem.js'
import type { ClaimPorts } from './ports.js'

/** An expired claim that asked to go, goes; what it owns follows. */
export async function deleteClaim(
  claim: Stored<SandboxClaim>,
  policy: 'Delete' | 'DeleteForeground',
  { client, events }: ClaimPorts,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const note = `Deleting Claim (ShutdownPolicy=${policy})`
  events.record(claim, { type: 'Normal', reason: 'ClaimExpired', action: 'Deleting', note })
  const ref = { name: claim.metadata.name, namespace: claim.metadata.namespace ?? '' }
  try {
    const propagation = policy === 'DeleteForeground' ? { propagationPolicy: 'Foreground' as const } : {}
    await client.delete(SandboxClaims, ref, { ...propagation, signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  return {}
}

/** A retained claim outlives its sandbox. Undefined once the sandbox is gone. */
export async function deleteSandbox(
  claim: Stored<SandboxClaim>,
  { client, state }: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<Sandbox> | undefined> {
  const name = claim.status?.sandbox?.name || claim.metadata.name
  const namespace = claim.metadata.namespace ?? ''
  const sandbox = state.sandboxes.get(`${namespace}/${name}`)
  if (!sandbox) return undefined
  if (!isControlledBy(sandbox, claim)) {
    const detail = `sandbox ${quote(name)} is not owned by claim ${quote(claim.metadata.name)}`
    throw new ClaimProblem('NotOwned', `sandbox not owned by this claim: ${detail}`)
  }
  if (sandbox.metadata.deletionTimestamp) return sandbox
  try {
    await client.delete(Sandboxes, { name, namespace }, { signal })
  } catch (error) {
    const text = `failed to delete expired sandbox: ${errorText(error)}`
    throw new ClaimProblem('ReconcilerError', text, { cause: error, sandbox })
  }
  return sandbox
}
