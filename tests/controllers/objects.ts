import type { KubeClient } from '@corral/kube'
import {
  isNotFound,
  type OwnerReference,
  type Pod,
  Pods,
  type Sandbox,
  Sandboxes,
  type SandboxStatus,
  type SandboxWarmPool,
  type Stored,
} from '@corral/resources'
import { namespace } from './cluster.js'

export const ref = (name: string): { name: string; namespace: string } => ({ name, namespace })

export function ownerRef(
  owner: Stored<Sandbox | SandboxWarmPool>,
  change: Partial<OwnerReference> = {},
): OwnerReference {
  const { name, uid } = owner.metadata
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
    ...change,
  }
}

export const foreignOwner: OwnerReference = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  name: 'other',
  uid: '00000000-0000-4000-8000-000000000000',
  controller: true,
}

export function pod(name: string, metadata: Pod['metadata'] = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, ...metadata },
    spec: { containers: [{ name: 'main', image: 'busybox:1' }] },
  }
}

/** Writes a Pod's status the way a kubelet does. */
export async function setPodStatus(client: KubeClient, name: string, status: object): Promise<Stored<Pod>> {
  return client.patch(Pods, ref(name), { type: 'merge', body: { status } }, { subresource: 'status' })
}

export const runningReady = (ip = '100.64.0.1'): object => ({
  phase: 'Running',
  conditions: [
    { type: 'PodScheduled', status: 'True' },
    { type: 'Ready', status: 'True' },
  ],
  podIP: ip,
  podIPs: [{ ip }],
})

export async function setSandboxStatus(
  client: KubeClient,
  name: string,
  status: SandboxStatus,
): Promise<Stored<Sandbox>> {
  return client.patch(Sandboxes, ref(name), { type: 'merge', body: { status } }, { subresource: 'status' })
}

export const readyStatus = (ip = '100.64.0.1', nodeName = ''): SandboxStatus => ({
  conditions: [
    {
      type: 'Ready',
      status: 'True',
      reason: 'DependenciesReady',
      message: 'Pod is Ready',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      observedGeneration: 1,
    },
  ],
  podIPs: [ip],
  ...(nodeName && { nodeName }),
})

export async function finishPod(client: KubeClient, name: string): Promise<void> {
  try {
    await client.delete(Pods, ref(name), { gracePeriodSeconds: 0 })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
