import { Sandboxes } from '@corral/resources'
import { controllingOwner, enqueueEvent, hasLabel, itself, type WorkQueue } from '@corral/runtime'
import type { CoreState } from '../shared/cluster-state.js'
import { labels } from '../shared/names.js'

export { watchPodWarnings } from './pod-warnings.js'
export type { SandboxOptions } from './ports.js'
export { isAwaited, sandboxReconciler } from './reconciler.js'

/** Wakes a Sandbox for every event of its own, and for those of its Pods and Services that carry the hash label. */
export function watchSandboxes(state: CoreState, queue: WorkQueue): void {
  const owner = controllingOwner(Sandboxes)
  state.sandboxes.onEvent((event) => enqueueEvent(queue, event, itself))
  state.pods.onEvent((event) => enqueueEvent(queue, event, owner, hasLabel(labels.nameHash)))
  state.services.onEvent((event) => enqueueEvent(queue, event, owner, hasLabel(labels.nameHash)))
}
