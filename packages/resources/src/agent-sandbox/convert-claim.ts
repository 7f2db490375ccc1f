import { SHADOW_POOL_PREFIX } from './keys.js'
import type { SandboxClaimV1alpha1 } from './v1alpha1.js'
import type { SandboxClaim } from './v1beta1.js'

/** v1alpha1 names a template and perhaps a pool, v1beta1 a pool only: the pool is the named one, the bound one's, or a shadow. */
export function claimToHub(source: SandboxClaimV1alpha1): SandboxClaim {
  const { sandboxTemplateRef: _template, warmpool: _pool, ...spec } = source.spec
  return { ...rest(source), spec: { ...spec, warmPoolRef: { name: poolNameFor(source) } } }
}

export function claimFromHub(source: SandboxClaim, state: SandboxClaimV1alpha1 | undefined): SandboxClaimV1alpha1 {
  const { warmPoolRef, volumeClaimTemplates: _dropped, ...spec } = source.spec
  const poolName = warmPoolRef?.name ?? ''
  const references = state ? restored(poolName, source, state) : derived(poolName)
  return { ...rest(source), spec: { ...spec, ...references } }
}

type References = Pick<SandboxClaimV1alpha1['spec'], 'sandboxTemplateRef' | 'warmpool'>

function poolNameFor(claim: SandboxClaimV1alpha1): string {
  const pool = specificPool(claim)
  if (pool) return pool
  const sandboxName = claim.status?.sandbox?.name
  if (sandboxName && sandboxName !== claim.metadata?.name) return withoutLastSegment(sandboxName)
  return SHADOW_POOL_PREFIX + (claim.spec.sandboxTemplateRef?.name ?? '')
}

function derived(poolName: string): References {
  if (!poolName.startsWith(SHADOW_POOL_PREFIX)) return { sandboxTemplateRef: { name: poolName }, warmpool: poolName }
  return { sandboxTemplateRef: { name: poolName.slice(SHADOW_POOL_PREFIX.length) }, warmpool: 'default' }
}

function restored(poolName: string, hub: SandboxClaim, state: SandboxClaimV1alpha1): References {
  const template = state.spec?.sandboxTemplateRef ?? { name: '' }
  const expected = specificPool(state) ?? template.name
  const sandboxName = hub.status?.sandbox?.name
  const unchanged =
    poolName === expected ||
    poolName === SHADOW_POOL_PREFIX + expected ||
    (sandboxName !== undefined &&
      sandboxName !== '' &&
      (poolName === sandboxName || poolName === withoutLastSegment(sandboxName)))
  if (!unchanged) return { sandboxTemplateRef: template, warmpool: poolName }
  const warmpool = state.spec?.warmpool
  return { sandboxTemplateRef: template, ...(warmpool === undefined ? {} : { warmpool }) }
}

/** The pool a v1alpha1 claim insists on; `none`, `default` and nothing leave the choice to the controller. */
function specificPool(claim: SandboxClaimV1alpha1): string | undefined {
  const pool = claim.spec?.warmpool
  return pool && pool !== 'none' && pool !== 'default' ? pool : undefined
}

function withoutLastSegment(name: string): string {
  const dash = name.lastIndexOf('-')
  return dash < 0 ? name : name.slice(0, dash)
}

function rest(source: Pick<SandboxClaim, 'metadata' | 'status'>): Pick<SandboxClaim, 'metadata' | 'status'> {
  return {
    ...(source.metadata ? { metadata: source.metadata } : {}),
    ...(source.status ? { status: source.status } : {}),
  }
}
