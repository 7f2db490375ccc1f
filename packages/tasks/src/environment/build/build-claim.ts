import {
  type Environment,
  type EnvironmentBuild,
  Environments,
  type SandboxClaim,
  type Stored,
} from '@corral/resources'

/** On the claim of a build: the environment it is for. */
const environmentLabel = 'corral.dev/environment'

/** The claim's shutdown time deletes the sandbox of a build whose controller is gone. */
const shutdownMs = 3 * 60 * 60_000

/** The claim of a build's sandbox, owned by the environment. */
export function buildClaim(
  { metadata }: Stored<Environment>,
  { claimName, attemptStartedAt }: EnvironmentBuild,
  pool: string,
): SandboxClaim {
  const shutdownTime = new Date(Date.parse(attemptStartedAt) + shutdownMs)
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxClaim',
    metadata: {
      name: claimName,
      namespace: metadata.namespace ?? 'default',
      labels: { [environmentLabel]: metadata.name },
      ownerReferences: [
        {
          apiVersion: Environments.apiVersion,
          kind: Environments.kind,
          name: metadata.name,
          uid: metadata.uid,
          controller: true,
          blockOwnerDeletion: false,
        },
      ],
    },
    spec: {
      warmPoolRef: { name: pool },
      lifecycle: { shutdownTime: `${shutdownTime.toISOString().slice(0, 19)}Z`, shutdownPolicy: 'Delete' },
    },
  }
}
