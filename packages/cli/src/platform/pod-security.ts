import type { Container } from '@corral/resources'

/** What the Pod Security level `restricted` asks of every pod. */
export const restrictedPod = {
  runAsNonRoot: true,
  runAsUser: 1000,
  runAsGroup: 1000,
  fsGroup: 1000,
  seccompProfile: { type: 'RuntimeDefault' },
} as const

export const restrictedContainer = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
} as const

/** The agent installs what it needs into its home: only what is kept from it is read-only. */
export const sandboxContainer: NonNullable<Container['securityContext']> = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
}

/** A namespace whose pods are held to that level. */
export const restrictedLabels = {
  'pod-security.kubernetes.io/enforce': 'restricted',
  'pod-security.kubernetes.io/warn': 'restricted',
} as const
