import { errorCode, isConditionTrue, podNameOf, type Sandbox, type Stored } from '@corral/resources'
import type { ObjectKey } from '@corral/runtime'
import { StepError } from '../shared/error-text.js'
import { labels } from '../shared/names.js'
import { poolOf, quote } from '../shared/ownership.js'
import { assign, transfer } from './adoption.js'
import { selectCandidate } from './candidate.js'
import type { ClaimDraft } from './claim-draft.js'
import { ClaimProblem } from './claim-problem.js'
import { launchLabels } from './first-ready.js'
import { findTemplate } from './pool-template.js'
import type { ClaimPorts } from './ports.js'
import type { WarmItem, WarmQueue } from './warm-queue.js'

/** Takes a member of the pool, or says whether there are candidates that only lack an address. */
export async function adoptWarm(
  draft: ClaimDraft,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<{ adopted?: Stored<Sandbox>; arePending: boolean }> {
  const { claim } = draft
  const { state, queue } = ports
  const namespace = claim.metadata.namespace ?? ''
  const pool = `${namespace}/${claim.spec.warmPoolRef.name}`
  const { chosen, putBack, setAside, arePending } = selectCandidate({
    claim,
    offers: takeAll(queue, pool),
    aside: queue.aside(pool),
    findSandbox: (key) => state.sandboxes.get(key),
    findPod: (sandbox) => state.pods.get(`${namespace}/${podNameOf(sandbox)}`),
    findPool: () => state.pools.get(pool),
    findTemplate: (name) => state.templates.get(`${namespace}/${name}`),
  })
  for (const item of setAside) queue.setAside(pool, item)
  for (const item of putBack) queue.add(pool, item)
  if (!chosen) return { arePending }
  const poolName = poolOf(chosen.sandbox) ?? ''
  const adoption = { claim, ports, signal, findTemplate: () => findTemplate(claim, ports) }
  try {
    draft.claim = await assign(adoption, chosen.sandbox.metadata.name, draft.stamps)
    draft.stamps = {}
  } catch (error) {
    queue.add(pool, chosen.item)
    throw error
  }
  let adopted: Stored<Sandbox>
  try {
    adopted = await transfer({ ...adoption, claim: draft.claim }, chosen.sandbox)
  } catch (error) {
    // A lost Sandbox must not be offered again; after any other failure it is still the pool's.
    if (errorCode(error) !== 'AdoptionConflict') queue.add(pool, chosen.item)
    throw error
  }
  const note = `Adopted warm pool Sandbox ${quote(adopted.metadata.name)}`
  ports.events.record(draft.claim, { type: 'Normal', reason: 'SandboxAdopted', action: 'Adoption', note })
  ports.metrics.created({
    namespace,
    launchType: 'warm',
    template: launchLabels(adopted).template,
    pool: poolName,
    isReady: isConditionTrue(adopted.status?.conditions, 'Ready'),
    createdBy: claim.metadata.labels?.[labels.createdBy],
  })
  return { adopted, arePending: false }
}

/** Takes members out of the queue for as long as they are asked for. */
function* takeAll(queue: WarmQueue, pool: ObjectKey): Generator<WarmItem> {
  for (let item = queue.take(pool); item; item = queue.take(pool)) yield item
}

/** Hands over a Sandbox that an earlier pass assigned. */
export async function completeTransfer(
  draft: ClaimDraft,
  sandbox: Stored<Sandbox>,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<Sandbox>> {
  const { claim } = draft
  try {
    return await transfer({ claim, ports, signal, findTemplate: () => findTemplate(claim, ports) }, sandbox)
  } catch (error) {
    if (error instanceof ClaimProblem || signal.aborted) throw error
    throw new StepError(`failed to complete adoption of ${quote(sandbox.metadata.name)}`, error)
  }
}
