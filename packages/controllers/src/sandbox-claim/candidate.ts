import {
  isConditionTrue,
  type Sandbox,
  type SandboxClaim,
  type SandboxTemplate,
  type SandboxWarmPool,
  type Stored,
} from '@corral/resources'
import type { ObjectKey } from '@corral/runtime'
import { sameBlueprint, templateHashes } from '../blueprint.js'
import { labels } from '../names.js'
import { isReachable, whyNotCandidate } from './adoptable.js'
import type { WarmItem, WarmQueue } from './warm-queue.js'

export interface CandidateWorld {
  claim: Stored<SandboxClaim>
  queue: WarmQueue
  findSandbox(key: ObjectKey): Stored<Sandbox> | undefined
  findPool(): Stored<SandboxWarmPool> | undefined
  findTemplate(name: string): Stored<SandboxTemplate> | undefined
}

export interface Candidate {
  sandbox: Stored<Sandbox>
  item: WarmItem
}

export interface Selection {
  chosen?: Candidate
  /** Whether there are candidates that only lack an address. */
  arePending: boolean
}

/**
 * Takes the best warm sandbox out of the queue: the first Ready one with an address, else the first with an address. What
 * was looked at and may serve another claim goes back to the end of the line; what can serve none is dropped.
 */
export function selectCandidate(world: CandidateWorld): Selection {
  const { claim, queue } = world
  const pool = `${claim.metadata.namespace ?? ''}/${claim.spec.warmPoolRef.name}`
  const putBack: WarmItem[] = []
  const freshness = lazy(() => freshnessRule(world))
  let fallback: Candidate | undefined
  let chosen: Candidate | undefined

  for (let item = queue.take(pool); item; item = queue.take(pool)) {
    const sandbox = world.findSandbox(item.key)
    if (!sandbox || whyNotCandidate(sandbox, claim)) continue
    const fresh = freshness()(sandbox)
    if (fresh === 'stale') continue
    if (!isReachable(sandbox)) {
      queue.setAside(pool, { ...item, nodeName: sandbox.status?.nodeName || item.nodeName })
      continue
    }
    if (fresh === 'unknown') {
      putBack.push({ ...item, nodeName: sandbox.status?.nodeName || item.nodeName })
      continue
    }
    if (isConditionTrue(sandbox.status?.conditions, 'Ready')) {
      chosen = { sandbox, item }
      break
    }
    if (fallback) putBack.push(item)
    else fallback = { sandbox, item }
  }
  if (fallback && chosen) putBack.push(fallback.item)
  for (const item of putBack) queue.add(pool, item)
  const best = chosen ?? fallback
  return best ? { chosen: best, arePending: false } : { arePending: arePending(world, pool, freshness) }
}

function arePending(
  { claim, queue, findSandbox }: CandidateWorld,
  pool: ObjectKey,
  freshness: () => (sandbox: Stored<Sandbox>) => Freshness,
): boolean {
  for (const { key } of queue.aside(pool)) {
    const sandbox = findSandbox(key)
    if (sandbox && !whyNotCandidate(sandbox, claim) && freshness()(sandbox) !== 'stale') return true
  }
  return false
}

type Freshness = 'fresh' | 'stale' | 'unknown'

/** Only a pool that recreates its members refuses old ones; where its template cannot be read, nobody can tell. */
function freshnessRule({ findPool, findTemplate }: CandidateWorld): (sandbox: Stored<Sandbox>) => Freshness {
  const pool = findPool()
  if (!pool) return () => 'unknown'
  if (pool.spec.updateStrategy?.type !== 'Recreate') return () => 'fresh'
  const template = findTemplate(pool.spec.sandboxTemplateRef.name)
  if (!template) return () => 'unknown'
  const { blueprint } = templateHashes(template)
  return (sandbox) => {
    if (sandbox.metadata.labels?.[labels.templateHash] === blueprint) return 'fresh'
    return sameBlueprint(template, sandbox) ? 'fresh' : 'stale'
  }
}

function lazy<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
