/** Labels and annotations with a meaning to the conversion between versions. */

/** Where a v1beta1 object keeps the whole v1alpha1 object it was made from, by kind. */
export const STATE_ANNOTATIONS = {
  Sandbox: 'api.agents.x-k8s.io/v1alpha1-sandbox-state',
  SandboxClaim: 'api.agents.x-k8s.io/v1alpha1-sandboxclaim-state',
  SandboxTemplate: 'api.agents.x-k8s.io/v1alpha1-sandboxtemplate-state',
  SandboxWarmPool: 'api.agents.x-k8s.io/v1alpha1-sandboxwarmpool-state',
} as const

/** Carries `volumeClaimTemplatesPolicy` through v1alpha1, which has no such field. */
export const POLICY_ANNOTATION = 'api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy'

/** Pools that stand in for v1alpha1 claims which name a template only. */
export const SHADOW_POOL_PREFIX = 'shadow-pool-'
