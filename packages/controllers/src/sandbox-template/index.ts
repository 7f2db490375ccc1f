import { SandboxTemplates } from '@corral/resources'
import { controllingOwner, enqueueEvent, itself, type WorkQueue } from '@corral/runtime'
import type { ExtensionsState } from '../shared/cluster-state.js'

export { templateReconciler } from './reconciler.js'

/** Wakes a template for its own events and for those of the policy it owns. */
export function watchTemplates(state: ExtensionsState, queue: WorkQueue): void {
  state.templates.onEvent((event) => enqueueEvent(queue, event, itself))
  state.networkPolicies.onEvent((event) => enqueueEvent(queue, event, controllingOwner(SandboxTemplates)))
}
