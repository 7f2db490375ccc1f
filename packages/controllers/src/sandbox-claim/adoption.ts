import {
  isConflict,
  isControlledBy,
  isNotFound,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxTemplate,
  type Stored,
} from '@corral/resources'
import { errorText } from '../shared/error-text.js'
import { annotations, labels } from '../shared/names.js'
import { poolOf } from '../shared/ownership.js'
import { whyNotCandidate } from './adoptable.js'
import { adoptionPatch } from './adoption-patch.js'
import { ClaimProblem } from './claim-problem.js'
import { retryOnConflict } from './conflict-retry.js'
import type { ClaimPorts } from './ports.js'

export interface Adoption {
  claim: Stored<SandboxClaim>
  ports: ClaimPorts
  findTemplate(): Stored<SandboxTemplate> | undefined
  signal: AbortSignal
}

/**
 * Writes the assignment onto the claim before anything else changes: from here on a crash is survived, because the next
 * pass finds the assignment and completes it. `stamps` ride along. Returns the claim as stored.
 */
export async function assign(
  { claim, ports, signal }: Adoption,
  sandboxName: string,
  stamps: Record<string, string>,
): Promise<Stored<SandboxClaim>> {
  const write = (base: Stored<SandboxClaim>): Promise<Stored<SandboxClaim>> => {
    const { resourceVersion } = base.metadata
    const marks = { ...stamps, [annotations.assignedSandbox]: sandboxName }
    return patchClaim(base, { metadata: { resourceVersion, annotations: marks } }, ports, signal)
  }
  try {
    return await write(claim)
  } catch (error) {
    if (!isConflict(error)) throw error
  }
  try {
    return await retryOnConflict(async () => {
      const fresh = await readClaim(claim, ports, signal)
      if (fresh.metadata.uid !== claim.metadata.uid) {
        throw conflict(`claim ${claim.metadata.name} was deleted and recreated during adoption`)
      }
      const assigned = fresh.metadata.annotations?.[annotations.assignedSandbox] || fresh.status?.sandbox?.name
      if (assigned && assigned !== sandboxName) {
        throw conflict(`claim ${claim.metadata.name} already assigned sandbox ${assigned}`)
      }
      return write(fresh)
    }, signal)
  } catch (error) {
    if (isConflict(error)) throw concurrentWrite(`claim ${claim.metadata.name}`, error)
    throw error
  }
}

/** Makes the assigned Sandbox the claim's. A conflict is settled by asking the server, on this Sandbox and no other. */
export async function transfer(adoption: Adoption, sandbox: Stored<Sandbox>): Promise<Stored<Sandbox>> {
  try {
    return await handOver(adoption, sandbox)
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error
  }
  return settle(adoption, sandbox.metadata.name)
}

async function handOver(
  { claim, ports, findTemplate, signal }: Adoption,
  sandbox: Stored<Sandbox>,
): Promise<Stored<Sandbox>> {
  const body = adoptionPatch(claim, sandbox, findTemplate())
  const ref = { name: sandbox.metadata.name, namespace: sandbox.metadata.namespace ?? '' }
  return ports.state.sandboxes.remember(await ports.client.patch(Sandboxes, ref, { type: 'merge', body }, { signal }))
}

async function settle(adoption: Adoption, name: string): Promise<Stored<Sandbox>> {
  const { claim, ports, signal } = adoption
  const namespace = claim.metadata.namespace ?? ''
  try {
    return await retryOnConflict(async () => {
      const fresh = await ports.client.get(Sandboxes, { name, namespace }, { signal })
      if (isControlledBy(fresh, claim)) return fresh
      if (poolOf(fresh) === undefined) {
        throw conflict(`sandbox ${name} is no longer pool-owned and not controlled by claim ${claim.metadata.name}`)
      }
      const reason = whyNotCandidate(fresh, claim)
      if (reason) throw conflict(`sandbox ${name} is no longer adoptable by claim ${claim.metadata.name}: ${reason}`)
      return handOver(adoption, fresh)
    }, signal)
  } catch (error) {
    signal.throwIfAborted()
    const isGone = isNotFound(error)
    if (isGone || error instanceof ClaimProblem) {
      await forgetLost(adoption, name, isGone ? 'deleted' : 'lost to another owner')
      throw isGone ? conflict(`sandbox ${name} deleted before adoption completed`) : error
    }
    if (isConflict(error)) {
      throw concurrentWrite(`completing adoption of ${name} for claim ${claim.metadata.name}`, error)
    }
    throw error
  }
}

/** The assigned Sandbox is out of reach for good: the claim must be free to get another one. */
async function forgetLost(adoption: Adoption, name: string, why: string): Promise<void> {
  const { claim, ports, signal } = adoption
  try {
    await retryOnConflict(async () => {
      const fresh = await readClaim(claim, ports, signal)
      if (fresh.metadata.uid !== claim.metadata.uid) return
      const marked = fresh.metadata.annotations?.[annotations.assignedSandbox] === name
      const labelled = fresh.metadata.labels?.[labels.assignedSandbox] === name
      if (!marked && !labelled) return
      const metadata = {
        resourceVersion: fresh.metadata.resourceVersion,
        ...(marked && { annotations: { [annotations.assignedSandbox]: null } }),
        ...(labelled && { labels: { [labels.assignedSandbox]: null } }),
      }
      await patchClaim(fresh, { metadata }, ports, signal)
    }, signal)
  } catch (error) {
    if (isNotFound(error)) return
    signal.throwIfAborted()
    throw new ClaimProblem(
      'AdoptionConflict',
      `adoption write conflict: sandbox ${name} ${why} and reference cleanup failed`,
      {
        cause: error,
      },
    )
  }
}

/** One merge patch of the claim itself. Returns and remembers what the server stored. */
export async function patchClaim(
  claim: Stored<SandboxClaim>,
  body: object,
  { client, state }: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<SandboxClaim>> {
  const ref = { name: claim.metadata.name, namespace: claim.metadata.namespace ?? '' }
  return state.claims.remember(await client.patch(SandboxClaims, ref, { type: 'merge', body }, { signal }))
}

function readClaim(
  claim: Stored<SandboxClaim>,
  { client }: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<SandboxClaim>> {
  return client.get(SandboxClaims, { name: claim.metadata.name, namespace: claim.metadata.namespace ?? '' }, { signal })
}

function conflict(detail: string): ClaimProblem {
  return new ClaimProblem('AdoptionConflict', `adoption write conflict: ${detail}`)
}

/** The server's own words stay in the log; the condition only says that another writer was faster. */
function concurrentWrite(detail: string, cause: unknown): ClaimProblem {
  const text = `adoption write conflict: ${detail}`
  return new ClaimProblem('AdoptionConflict', `${text}: ${errorText(cause)}`, {
    cause,
    shown: `${text} (conflicting concurrent write)`,
  })
}
