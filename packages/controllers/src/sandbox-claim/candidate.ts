import {
  isConditionTrue,
  type Pod,
  type Sandbox,
  type SandboxClaim,
  type SandboxTemplate,
  type SandboxWarmPool,
  type Stored,
} from '@corral/resources'
import type { ObjectKey } from '@corral/runtime'
import { sameBlueprint, templateHashes } from '../shared/blueprint.js'
import { labels } from '../shared/names.js'
import { isPodLost, isReachable, whyNotCandidate } from './adoptable.js'
import type { WarmItem } from './warm-queue.js'

export interface CandidateWorld {
  claim: Stored<SandboxClaim>
  /** Members of the pool in the order in which they are offered; read only as far as needed. */
  offers: Iterable<WarmItem>
  /** Members that lacked an address when they were last looked at. */
  aside: Iterable<WarmItem>
  findSandbox(key: ObjectKey): Stored<Sandbox> | undefined
  findPod(sandbox: Stored<Sandbox>): Pod | undefined
  findPool(): Stored<SandboxWarmPool> | undefined
  findTemplate(name: string): Stored<SandboxTemplate> | undefined
}

export interface Candidate {
  sandbox: Stored<Sandbox>
  item: WarmItem
}

export interface Selection {
  chosen?: Candidate
  /** Looked at and left for another claim. */
  putBack: WarmItem[]
  /** Looked at and without an address. */
  setAside: WarmItem[]
  /** Whether there are candidates that only lack an address, or whose Pod is being made again. */
  arePending: boolean
}

/**
 * The best warm sandbox on offer: the first Ready one with an address, else the first with an address; never one whose Pod
 * has lost what ran in it. What was looked at and is neither chosen nor put back nor set aside can serve no claim.
 */
export function selectCandidate(world: CandidateWorld): Selection {
  const { claim } = world
  const putBack: WarmItem[] = []
  const setAside: WarmItem[] = []
  const freshness = lazy(() => freshnessRule(world))
  let fallback: Candidate | undefined
  let chosen: Candidate | undefined
  let isOneLost = false

  for (const item of world.offers) {
    const sandbox = world.findSandbox(item.key)
    if (!sandbox || whyNotCandidate(sandbox, claim)) continue
    const fresh = freshness()(sandbox)
    if (fresh === 'stale') continue
    if (!isReachable(sandbox)) {
      setAside.push({ ...item, nodeName: sandbox.status?.nodeName || item.nodeName })
      continue
    }
    if (isPodLost(sandbox, world.findPod(sandbox))) {
      // Not set aside: it would come back with the next address of the Sandbox, whose status may never show the gap.
      putBack.push(item)
      isOneLost = true
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
  const best = chosen ?? fallback
  if (best) return { chosen: best, putBack, setAside, arePending: false }
  const areAside = (): boolean => arePending(world, [...world.aside, ...setAside], freshness)
  return { putBack, setAside, arePending: isOneLost || areAside() }
}

function arePending(
  { claim, findSandbox }: CandidateWorld,
  aside: readonly WarmItem[],
  freshness: () => (sandbox: Stored<Sandbox>) => Freshness,
): boolean {
  for (const { key } of aside) {
    const sandbox = findSandbox(key)
    if (sandbox && !whyNotCandidate(sandbox, claim) && freshness()(sandbox) !== 'stale') return true
  }
  return false
}

type Freshness = 'fresh' | 'stale' | 'unknown'

/** Only a pool that recreates its members refuses old ones; where its template cannot be read, no member counts as old. */
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
