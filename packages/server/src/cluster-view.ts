import type { KubeClient } from '@corral/kube'
import { CorralError, type ObjectView, type PoolInfo, type SandboxInfo, type ShownKind } from '@corral/protocol'
import {
  AgentTasks,
  Events,
  findCondition,
  isNotFound,
  type KubeObject,
  Pods,
  Projects,
  type ResourceKind,
  type Sandbox,
  SandboxClaims,
  Sandboxes,
  SandboxTemplates,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { dump } from 'js-yaml'
import type { PlatformService } from './platform-service.js'

/** Sandboxes, pools and the objects behind them, read from the cluster: the browser never gets a kubeconfig. */
export function clusterView(
  client: Pick<KubeClient, 'list' | 'get' | 'patch'>,
  namespace: string,
  taskLabel: string,
): Pick<PlatformService, 'sandboxes' | 'pools' | 'resizePool' | 'object'> {
  return {
    async sandboxes() {
      const [sandboxes, claims, pods] = await Promise.all([
        client.list(Sandboxes, { namespace }),
        client.list(SandboxClaims, { namespace }),
        client.list(Pods, { namespace }),
      ])
      const claimOf = new Map(claims.items.map((claim) => [claim.status?.sandbox?.name, claim]))
      const podOf = new Map(pods.items.map((pod) => [pod.metadata.name, pod]))
      return sandboxes.items
        .map((sandbox): SandboxInfo => {
          const claim = claimOf.get(sandbox.metadata.name)
          const task = claim?.metadata.labels?.[taskLabel]
          const pod = podOf.get(sandbox.metadata.name)
          return {
            ...sandboxInfo(sandbox),
            ...(claim ? { claim: claim.metadata.name } : {}),
            ...(task ? { task } : {}),
            ...(pod ? { pod: pod.metadata.name } : {}),
            ...(pod?.spec?.nodeName ? { node: pod.spec.nodeName } : {}),
            ...(pod?.status?.podIPs ? { addresses: pod.status.podIPs.flatMap(({ ip }) => (ip ? [ip] : [])) } : {}),
          }
        })
        .sort((one, other) => other.created_at.localeCompare(one.created_at) || one.name.localeCompare(other.name))
    },
    async pools() {
      const { items } = await client.list(SandboxWarmPools, { namespace })
      return items.map(poolInfo).sort((one, other) => one.name.localeCompare(other.name))
    },
    async resizePool(name, replicas) {
      const patch = { type: 'merge' as const, body: { spec: { replicas } } }
      return poolInfo(await found(`pool "${name}"`, client.patch(SandboxWarmPools, { namespace, name }, patch)))
    },
    async object(kind, name) {
      const object = await found(`${kind} "${name}"`, client.get(kinds[kind], { namespace, name }))
      const { items } = await client.list(Events, { namespace, fieldSelector: `involvedObject.name=${name}` })
      const { managedFields: _, ...metadata } = object.metadata
      return {
        kind: object.kind ?? kind,
        name,
        namespace,
        yaml: dump({ ...object, metadata }, { noRefs: true, lineWidth: 120 }),
        events: items
          .filter(({ involvedObject }) => involvedObject.kind?.toLowerCase() === kind)
          .map((event): ObjectView['events'][number] => {
            const seen = event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp ?? undefined
            return {
              type: event.type ?? 'Normal',
              reason: event.reason ?? '',
              message: event.message ?? '',
              count: event.count ?? event.series?.count ?? 1,
              ...(seen ? { last_seen: seen } : {}),
            }
          })
          .sort((one, other) => (other.last_seen ?? '').localeCompare(one.last_seen ?? '')),
      }
    },
  }
}

const kinds: Readonly<Record<ShownKind, ResourceKind<KubeObject>>> = {
  agenttask: AgentTasks as ResourceKind<KubeObject>,
  project: Projects as ResourceKind<KubeObject>,
  sandbox: Sandboxes as ResourceKind<KubeObject>,
  sandboxclaim: SandboxClaims as ResourceKind<KubeObject>,
  sandboxwarmpool: SandboxWarmPools as ResourceKind<KubeObject>,
  sandboxtemplate: SandboxTemplates as ResourceKind<KubeObject>,
  pod: Pods as ResourceKind<KubeObject>,
}

async function found<T>(what: string, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (cause) {
    if (isNotFound(cause)) throw new CorralError('NotFound', `there is no ${what}`, { cause })
    throw cause
  }
}

function sandboxInfo({ metadata, spec, status }: Stored<Sandbox>): SandboxInfo {
  const ready = findCondition(status?.conditions ?? [], 'Ready')
  const isSuspended = spec.operatingMode === 'Suspended'
  const isFailed = findCondition(status?.conditions ?? [], 'Finished')?.status === 'True'
  const isReady = ready?.status === 'True'
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === 'SandboxWarmPool')?.name
  const runtimeClass = spec.podTemplate?.spec?.runtimeClassName
  return {
    name: metadata.name,
    state: isSuspended ? 'suspended' : isFailed ? 'failed' : isReady ? 'ready' : 'waiting',
    ...(!isReady && ready ? { reason: ready.reason, message: ready.message } : {}),
    ...(owner ? { pool: owner } : {}),
    ...(runtimeClass ? { runtime_class: runtimeClass } : {}),
    created_at: metadata.creationTimestamp,
  }
}

function poolInfo({ metadata, spec, status }: Stored<SandboxWarmPool>): PoolInfo {
  return {
    name: metadata.name,
    template: spec.sandboxTemplateRef.name,
    replicas: spec.replicas ?? 1,
    ready: status?.readyReplicas ?? 0,
    created_at: metadata.creationTimestamp,
  }
}
