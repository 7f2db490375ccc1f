import type { KubeObject } from '@corral/resources'
import type { ServerContext } from '../context/server-context.js'
import { planBinding, type SchedulingNode, type SchedulingPod } from '../registry/plan-binding.js'
import { bindPod, markUnscheduled } from './bind-pod.js'

/**
 * Gives every pending pod a node in the turn in which it appears, and all waiting ones when a node changes. Decides on
 * the newest state, so it never overwrites another writer's change. Returns a function that stops it.
 */
export function startScheduler(context: ServerContext): () => void {
  const { store, log } = context
  const pods = store.collection('pods')
  const nodes = store.collection('nodes')

  const schedule = (seen: KubeObject): void => {
    const pod = pods.findHead(seen.metadata?.namespace ?? '', seen.metadata?.name ?? '')
    if (!pod) return
    const plan = planBinding(pod as SchedulingPod, nodes.list() as readonly SchedulingNode[])
    if (plan.type === 'none') return
    const write =
      plan.type === 'bind' ? bindPod(context, pod, plan.node) : markUnscheduled(context, pod, plan.reason, plan.message)
    write.committed.catch((error: unknown) => log.error('pod could not be bound', { pod: pod.metadata?.name, error }))
  }
  const scheduleAll = (): void => {
    for (const pod of pods.list()) if (isUnbound(pod)) schedule(pod)
  }

  scheduleAll()
  const stops = [
    // As soon as it is queued: the pod and its binding share one way to the disk.
    store.listenQueued((collection, object) => {
      if (collection === 'pods' && isUnbound(object)) schedule(object)
    }),
    store.listen((collection, event) => {
      if (collection === 'nodes' && isNews(event.object, event.previous)) scheduleAll()
      // A node that became ready while the pod was on its way to the disk was not seen from either side.
      if (collection === 'pods' && event.type !== 'DELETED' && isUnbound(event.object)) schedule(event.object)
    }),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

const isUnbound = (pod: SchedulingPod): boolean => !pod.spec?.nodeName

/** Heartbeats change a node's status all the time; only readiness, cordons and labels matter here. */
function isNews(node: SchedulingNode, previous: SchedulingNode | undefined): boolean {
  if (!previous) return true
  const facts = ({ spec, metadata, status }: SchedulingNode): string =>
    JSON.stringify([
      spec?.unschedulable,
      metadata?.labels,
      status?.conditions?.find((condition) => condition.type === 'Ready')?.status,
    ])
  return facts(node) !== facts(previous)
}
