import { podNameAnnotation } from '@corral/resources'

/** Labels, annotations and reasons as Agent Sandbox spells them; clients and dashboards compare these strings. */

export const labels = {
  nameHash: 'agents.x-k8s.io/sandbox-name-hash',
  adoptable: 'agents.x-k8s.io/adoptable',
  warmPool: 'agents.x-k8s.io/warm-pool-sandbox',
  templateRefHash: 'agents.x-k8s.io/sandbox-template-ref-hash',
  templateHash: 'agents.x-k8s.io/sandbox-template-hash',
  podTemplateHash: 'agents.x-k8s.io/sandbox-pod-template-hash',
  launchType: 'agents.x-k8s.io/launch-type',
  createdBy: 'agents.x-k8s.io/created-by',
  claimUid: 'agents.x-k8s.io/claim-uid',
  /** Deprecated carrier of a claim's assignment; the annotation of the same key replaces it. */
  assignedSandbox: 'agents.x-k8s.io/sandbox-name',
} as const

export const annotations = {
  podName: podNameAnnotation as typeof podNameAnnotation,
  templateRef: 'agents.x-k8s.io/sandbox-template-ref',
  propagatedLabels: 'agents.x-k8s.io/propagated-labels',
  propagatedAnnotations: 'agents.x-k8s.io/propagated-annotations',
  assignedSandbox: 'agents.x-k8s.io/sandbox-name',
  firstObservedAt: 'agents.x-k8s.io/controller-first-observed-at',
  firstReadyAt: 'agents.x-k8s.io/claim-first-ready-at',
  webhookObservedAt: 'agents.x-k8s.io/webhook-first-observed-at',
  clientRequestedAt: 'agents.x-k8s.io/client-first-requested-at',
  traceContext: 'opentelemetry.io/trace-context',
  safeToEvict: 'cluster-autoscaler.kubernetes.io/safe-to-evict',
} as const

/** Field manager of the objects the Sandbox controller creates. */
export const sandboxFieldManager = 'sandbox-controller'

/** Keys that belong to the controllers: a pod template cannot set them on a Pod. */
export function isReservedKey(key: string): boolean {
  return key.startsWith('agents.x-k8s.io/') || key.startsWith('extensions.agents.x-k8s.io/')
}

export function isReservedAnnotation(key: string): boolean {
  return isReservedKey(key) || key === annotations.traceContext
}

const knownCreators = new Set(['go-client', 'python-client', 'controller'])

/** Bounds the values of `created-by`, so that they can label metrics. */
export function normalizeCreatedBy(value: string | undefined): string {
  return value !== undefined && knownCreators.has(value) ? value : 'unknown'
}
