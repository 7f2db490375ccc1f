import { type Pod, Pods, podNameOf, type Stored } from '@corral/resources'
import { indexes } from '../shared/cluster-state.js'
import { StepError } from '../shared/error-text.js'
import type { ChildOutcome } from './child-step.js'
import type { Deferrals } from './deferrals.js'
import { ChildExists, performStep } from './perform.js'
import { type PodWorld, planPod } from './pod-plan.js'
import type { SandboxPorts } from './ports.js'
import type { ReconcileContext } from './reconcile-context.js'

/** How it went with the Pod. */
export interface PodOutcome extends ChildOutcome<Stored<Pod>> {
  multiplePods?: { count: number }
  deferredMs?: number
  /** A Pod was to be made; whether it was, the object and the errors say. */
  creates?: boolean
}

/** Makes, adopts, changes or deletes the Pod as the Sandbox asks. */
export async function reconcilePod(
  context: ReconcileContext,
  ports: SandboxPorts,
  deferrals: Deferrals,
): Promise<PodOutcome> {
  const { key, sandbox, hash, signal } = context
  const { state, client, clock } = ports
  const namespace = sandbox.metadata.namespace ?? ''
  const world: PodWorld = {
    sandbox,
    nameHash: hash,
    hashedPods: state.pods.byIndex(indexes.nameHash, `${namespace}/${hash}`),
    namedPod: state.pods.get(`${namespace}/${podNameOf(sandbox)}`),
    deferMs: deferrals.leftMs(key, clock.now()),
  }
  try {
    return await follow(world)
  } catch (error) {
    if (!(error instanceof ChildExists)) throw error
    // Another writer was faster, or the cache is old: read the object from the server and plan once more.
    try {
      const existing = await client.get(Pods, { name: sandbox.metadata.name, namespace }, { signal })
      return await follow({ ...world, namedPod: existing })
    } catch (failure) {
      return { errors: [new StepError('pod already exists but failed to fetch', failure)] }
    }
  }

  async function follow(current: PodWorld): Promise<PodOutcome> {
    const step = planPod(current)
    const outcome = await performStep(step, sandbox, ports, signal)
    if (step.ownedCount > 1) return { errors: [], multiplePods: { count: step.ownedCount } }
    if (outcome.object) {
      const name = step.found ? 'ExistingPodStatusObserved' : 'NewPodStatusObserved'
      const { metadata, status } = outcome.object
      context.span.event(name, { 'pod.Name': metadata.name, 'pod.Phase': status?.phase ?? '' })
    }
    const creates = step.actions.some(({ kind }) => kind === 'create')
    return { ...outcome, creates, ...(step.deferred && { deferredMs: current.deferMs }) }
  }
}
