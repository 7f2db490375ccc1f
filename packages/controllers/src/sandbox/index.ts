import { type KubeObject, Sandboxes } from '@corral/resources'
import {
  controllingOwner,
  type EventFilter,
  enqueueEvent,
  hasLabel,
  itself,
  notWrittenBy,
  type WorkQueue,
} from '@corral/runtime'
import type { CoreState } from '../cluster-state.js'
import { controllers, labels } from '../names.js'

export type { SandboxOptions } from './ports.js'
export { sandboxReconciler } from './reconciler.js'

/**
 * Wakes a Sandbox for every event of its own, and for those of its Pods and Services that carry the hash label, unless
 * the event is this controller's own write.
 */
export function watchSandboxes(state: CoreState, queue: WorkQueue): void {
  const owner = controllingOwner(Sandboxes)
  const isNews = notWrittenBy(controllers.sandbox)
  const isHashed = hasLabel(labels.nameHash)
  const concernsOwner: EventFilter<KubeObject> = (event) => isNews(event) && isHashed(event)
  state.sandboxes.onEvent((event) => enqueueEvent(queue, event, itself, isNews))
  state.pods.onEvent((event) => enqueueEvent(queue, event, owner, concernsOwner))
  state.services.onEvent((event) => enqueueEvent(queue, event, owner, concernsOwner))
}
