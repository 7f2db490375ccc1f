import type { Condition, KubeObject } from '@corral/resources'

export interface SchedulingPod extends KubeObject {
  spec?: {
    nodeName?: string
    schedulerName?: string
    schedulingGates?: { name: string }[]
    nodeSelector?: Record<string, string>
  }
  status?: { phase?: string; conditions?: Partial<Condition>[] }
}

export interface SchedulingNode extends KubeObject {
  spec?: { unschedulable?: boolean }
  status?: { conditions?: Partial<Condition>[] }
}

export type Binding =
  | { readonly type: 'none' }
  | { readonly type: 'bind'; readonly node: string }
  | { readonly type: 'unschedulable'; readonly reason: string; readonly message: string }

const NONE: Binding = { type: 'none' }

/** What a pod is told that a gate holds back. */
export const GATED_TEXT = 'Scheduling is blocked due to non-empty scheduling gates'

/** Where a pod goes: the first ready node that its node selector allows. Pure; a pod that waits already gets no news. */
export function planBinding(pod: SchedulingPod, nodes: readonly SchedulingNode[]): Binding {
  if (!isWaiting(pod)) return NONE
  if ((pod.spec?.schedulingGates?.length ?? 0) > 0) {
    return news(pod, 'SchedulingGated', GATED_TEXT)
  }
  const node = nodes.find((each) => isUsable(each) && matches(pod, each))
  if (node) return { type: 'bind', node: node.metadata?.name ?? '' }
  return news(
    pod,
    'Unschedulable',
    `0/${nodes.length} nodes are available${nodes.length > 0 ? whyNot(pod, nodes) : ''}`,
  )
}

function isWaiting({ metadata, spec, status }: SchedulingPod): boolean {
  if (metadata?.deletionTimestamp || spec?.nodeName) return false
  if ((spec?.schedulerName ?? 'default-scheduler') !== 'default-scheduler') return false
  return status?.phase === undefined || status.phase === 'Pending'
}

function isUsable(node: SchedulingNode): boolean {
  if (node.spec?.unschedulable || node.metadata?.deletionTimestamp) return false
  return (
    node.status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false
  )
}

function matches(pod: SchedulingPod, node: SchedulingNode): boolean {
  const labels = node.metadata?.labels ?? {}
  return Object.entries(pod.spec?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value)
}

function whyNot(pod: SchedulingPod, nodes: readonly SchedulingNode[]): string {
  const usable = nodes.filter(isUsable).length
  const unready = nodes.length - usable
  const parts = []
  if (unready > 0) parts.push(`${unready} node(s) were not ready or unschedulable`)
  if (usable > 0 && pod.spec?.nodeSelector) parts.push(`${usable} node(s) didn't match Pod's node affinity/selector`)
  return parts.length > 0 ? `: ${parts.join(', ')}.` : ''
}

function news(pod: SchedulingPod, reason: string, message: string): Binding {
  const known = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled')
  return known?.reason === reason && known.message === message ? NONE : { type: 'unschedulable', reason, message }
}
