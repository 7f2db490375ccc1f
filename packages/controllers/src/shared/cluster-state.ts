import type { KubeClient } from '@corral/kube'
import type { Clock, Logger } from '@corral/ports'
import {
  type KubeObject,
  NetworkPolicies,
  type NetworkPolicy,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  type Pod,
  Pods,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxTemplate,
  SandboxTemplates,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Service,
  Services,
  type Stored,
} from '@corral/resources'
import { informedStore, type Store, type StoreOptions, withoutManagedFields } from './informed-store.js'
import { labels } from './names.js'

/** Stores every controller reads. */
export interface CoreState {
  sandboxes: Store<Sandbox>
  pods: Store<Pod>
  services: Store<Service>
  pvcs: Store<PersistentVolumeClaim>
}

/** Stores of the extensions: claims, templates, pools. */
export interface ExtensionsState {
  claims: Store<SandboxClaim>
  templates: Store<SandboxTemplate>
  pools: Store<SandboxWarmPool>
  networkPolicies: Store<NetworkPolicy>
}

export interface StateOptions {
  client: KubeClient
  clock: Clock
  log: Logger
  signal: AbortSignal
  /** Watch only Pods and Services that carry our hash label. */
  onlyLabelled: boolean
}

export const indexes = {
  /** `namespace/value` of the hash label. */
  nameHash: 'name-hash',
  /** `namespace/value` of the pool label. */
  warmPool: 'warm-pool',
  /** `namespace/name` of the pool a claim asks for. */
  poolRef: 'pool-ref',
  /** `namespace/name` of the template a pool uses. */
  templateRef: 'template-ref',
} as const

export function startCoreState(options: StateOptions): CoreState {
  const scope = options.onlyLabelled ? { labelSelector: labels.nameHash } : {}
  return {
    sandboxes: open(options, { kind: Sandboxes, indexers: { [indexes.warmPool]: byLabel(labels.warmPool) } }),
    pods: open(options, {
      kind: Pods,
      indexers: { [indexes.nameHash]: byLabel(labels.nameHash) },
      transform: slimPod,
      ...scope,
    }),
    services: open(options, { kind: Services, ...scope }),
    pvcs: open(options, { kind: PersistentVolumeClaims }),
  }
}

/** Watches the extensions, or only the kinds that are named. */
export function startExtensionsState(options: StateOptions): ExtensionsState
export function startExtensionsState<K extends keyof ExtensionsState>(
  options: StateOptions,
  kinds: readonly K[],
): Pick<ExtensionsState, K>
export function startExtensionsState(
  options: StateOptions,
  kinds: readonly (keyof ExtensionsState)[] = ['claims', 'templates', 'pools', 'networkPolicies'],
): Partial<ExtensionsState> {
  const openers: { [K in keyof ExtensionsState]: () => ExtensionsState[K] } = {
    claims: () =>
      open(options, {
        kind: SandboxClaims,
        indexers: { [indexes.poolRef]: byField((claim: SandboxClaim) => claim.spec.warmPoolRef?.name) },
      }),
    templates: () => open(options, { kind: SandboxTemplates }),
    pools: () =>
      open(options, {
        kind: SandboxWarmPools,
        indexers: { [indexes.templateRef]: byField((pool: SandboxWarmPool) => pool.spec.sandboxTemplateRef?.name) },
      }),
    networkPolicies: () => open(options, { kind: NetworkPolicies }),
  }
  return Object.fromEntries(kinds.map((kind) => [kind, openers[kind]()]))
}

/** Everything a Pod's controllers never read is dropped before it is kept: the spec but for its node, and finalizers. */
export function slimPod(pod: Stored<Pod>): Stored<Pod> {
  const { managedFields: _, finalizers: __, ...metadata } = pod.metadata
  const nodeName = pod.spec?.nodeName
  // The cast holds because the rest of a stored Pod's spec is never read.
  return { ...pod, metadata, spec: (nodeName === undefined ? {} : { nodeName }) as NonNullable<Pod['spec']> }
}

type PerStore<T extends KubeObject> = Omit<StoreOptions<T>, 'client' | 'clock' | 'log' | 'signal'>

function open<T extends KubeObject>(options: StateOptions, store: PerStore<T>): Store<T> {
  const { client, clock, log, signal } = options
  return informedStore({ client, clock, log, signal, transform: withoutManagedFields, ...store })
}

function byLabel<T extends KubeObject>(label: string): (object: Stored<T>) => string[] {
  return ({ metadata }) => {
    const value = metadata.labels?.[label]
    return value ? [`${metadata.namespace ?? ''}/${value}`] : []
  }
}

function byField<T extends KubeObject>(field: (object: T) => string | undefined): (object: Stored<T>) => string[] {
  return (object) => {
    const value = field(object)
    return value ? [`${object.metadata.namespace ?? ''}/${value}`] : []
  }
}
