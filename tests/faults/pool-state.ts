import type { KubeClient } from '@corral/kube'
import { isConditionTrue, Pods, SandboxClaims, Sandboxes } from '@corral/resources'

/** What is left of tasks, and how their pool does: enough to see from a failed wait which object does not heal. */
export interface PoolState {
  readonly claims: readonly string[]
  readonly sandboxes: readonly string[]
  readonly pods: readonly string[]
  readonly areReady: boolean
}

export async function readPoolState(kube: KubeClient): Promise<PoolState> {
  const [claims, sandboxes, pods] = await Promise.all([
    kube.list(SandboxClaims, { namespace: 'corral' }),
    kube.list(Sandboxes, { namespace: 'corral' }),
    kube.list(Pods, { namespace: 'corral' }),
  ])
  return {
    claims: claims.items.map(({ metadata, status }) => line(metadata, status?.conditions)),
    sandboxes: sandboxes.items.map(({ metadata, status }) => line(metadata, status?.conditions)),
    pods: pods.items.map(({ metadata, status }) =>
      line(metadata, status?.conditions, [
        status?.phase,
        status?.reason,
        status?.message,
        ...(status?.containerStatuses ?? []).map(({ state }) => JSON.stringify(state)),
      ]),
    ),
    areReady: sandboxes.items.every(({ status }) => isConditionTrue(status?.conditions, 'Ready')),
  }
}

function line(
  metadata: { name: string; deletionTimestamp?: string; finalizers?: readonly string[] },
  conditions: readonly { type: string; status: string; reason?: string; message?: string }[] = [],
  words: readonly (string | undefined)[] = [],
): string {
  return [
    metadata.name,
    metadata.deletionTimestamp && `deleted at ${metadata.deletionTimestamp}`,
    metadata.finalizers?.length && `finalizers ${metadata.finalizers.join()}`,
    ...words,
    ...conditions.map(({ type, status, reason, message }) =>
      [`${type}=${status}`, reason, message].filter(Boolean).join(' '),
    ),
  ]
    .filter(Boolean)
    .join('; ')
}
