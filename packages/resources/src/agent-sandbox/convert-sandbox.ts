import type { SandboxV1alpha1 } from './v1alpha1.js'
import type { Sandbox } from './v1beta1.js'

/** `replicas: 0` becomes Suspended; anything else, absent included, Running. */
export function sandboxToHub(source: SandboxV1alpha1): Sandbox {
  const { replicas, ...spec } = source.spec
  const { replicas: _statusReplicas, ...status } = source.status ?? {}
  return {
    ...base(source),
    spec: { ...spec, operatingMode: replicas === 0 ? 'Suspended' : 'Running' },
    ...(source.status ? { status } : {}),
  }
}

export function sandboxFromHub(source: Sandbox, state: SandboxV1alpha1 | undefined): SandboxV1alpha1 {
  const { operatingMode, ...spec } = source.spec
  const { nodeName: _nodeName, ...status } = source.status ?? {}
  const plain = operatingMode === 'Suspended' ? 0 : 1
  const replicas = state && operatingMode === 'Running' ? restored(state) : plain
  const statusReplicas = state ? state.status?.replicas : plain
  const hasStatus = source.status !== undefined || statusReplicas !== undefined
  return {
    ...base(source),
    spec: { ...spec, ...(replicas === undefined ? {} : { replicas }) },
    ...(hasStatus
      ? { status: { ...status, ...(statusReplicas === undefined ? {} : { replicas: statusReplicas }) } }
      : {}),
  }
}

/** A sandbox that was suspended in v1alpha1 and runs now counts one replica; otherwise its own number, even none. */
function restored(state: SandboxV1alpha1): number | undefined {
  const original = state.spec?.replicas
  return original === 0 ? 1 : original
}

function base(source: { metadata?: Sandbox['metadata'] }): Pick<Sandbox, 'metadata'> {
  return source.metadata ? { metadata: source.metadata } : {}
}
