import type { SandboxWarmPoolV1alpha1 } from './v1alpha1.js'
import type { SandboxWarmPool } from './v1beta1.js'

export function poolToHub(source: SandboxWarmPoolV1alpha1): SandboxWarmPool {
  return {
    ...(source.metadata ? { metadata: source.metadata } : {}),
    spec: source.spec,
    ...(source.status ? { status: source.status } : {}),
  }
}

/** v1alpha1 requires `replicas`, so an absent one is spelled out; `observedGeneration` has no place there. */
export function poolFromHub(source: SandboxWarmPool): SandboxWarmPoolV1alpha1 {
  const { observedGeneration: _observed, ...status } = source.status ?? {}
  return {
    ...(source.metadata ? { metadata: source.metadata } : {}),
    spec: { ...source.spec, replicas: source.spec.replicas ?? 1 },
    ...(source.status ? { status } : {}),
  }
}
