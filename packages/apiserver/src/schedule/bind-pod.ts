import { type Condition, type KubeObject, setCondition } from '@corral/resources'
import type { ServerContext } from '../context/server-context.js'
import type { SchedulingPod } from '../registry/plan-binding.js'
import type { PendingWrite } from '../store/object-store.js'

/** Sets the node and the condition that says so, in one write. */
export function bindPod(context: ServerContext, pod: KubeObject, node: string): PendingWrite {
  const { spec, status } = pod as SchedulingPod
  const conditions = withScheduled(status?.conditions, { status: 'True', reason: '', message: '' }, context.clock.now())
  const bound = { ...pod, spec: { ...spec, nodeName: node }, status: { ...status, conditions } }
  return context.store.put('pods', bound as KubeObject)
}

/** Records why the pod has no node yet. */
export function markUnscheduled(
  context: ServerContext,
  pod: KubeObject,
  reason: string,
  message: string,
): PendingWrite {
  const { status } = pod as SchedulingPod
  const conditions = withScheduled(status?.conditions, { status: 'False', reason, message }, context.clock.now())
  return context.store.put('pods', { ...pod, status: { ...status, conditions } } as KubeObject)
}

function withScheduled(
  conditions: readonly Partial<Condition>[] | undefined,
  update: Pick<Condition, 'status' | 'reason' | 'message'>,
  now: Date,
): object[] {
  const next = setCondition((conditions ?? []) as Condition[], { type: 'PodScheduled', ...update }, now)
  // Pod conditions leave reason and message out rather than empty.
  return next.map((condition) => {
    const { reason, message, ...rest } = condition
    return { lastProbeTime: null, ...rest, ...(reason ? { reason } : {}), ...(message ? { message } : {}) }
  })
}
