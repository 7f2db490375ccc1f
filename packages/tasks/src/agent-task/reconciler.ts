import { type AgentTask, AgentTasks, type Stored } from '@corral/resources'
import type { Reconcile } from '@corral/runtime'
import { findClaim } from '../held/find-claim.js'
import { beyondReach, withoutProvider } from './beyond-reach.js'
import { afterStep } from './ended-step.js'
import { perform } from './perform.js'
import { planTask } from './plan.js'
import { findEviction, insteadOfLoss, mayBeEviction } from './pod-eviction.js'
import { awaitsPod, findPodProblem } from './pod-start.js'
import { append, appendIfRoom, writeStatus } from './recording.js'
import type { EndedStep } from './step-runner.js'
import type { TaskPorts } from './task-ports.js'

/** Read, plan, act. A pass that finds an ended step records it and leaves the rest to the next pass, which reads it back. */
export function taskReconciler(home: TaskPorts): Reconcile {
  return async ({ namespace, name, signal }) => {
    const task = await home.client.find(AgentTasks, { namespace, name }, { signal })
    if (!task) return {}
    const uid = task.metadata.uid
    const ended = home.steps.takeEnded(uid)
    if (ended) return recordEnded(home, task, ended)
    const ports = await home.at(task)
    if (!ports) return withoutProvider(task, home)

    const found = await findClaim(ports.client, task, ports.clock.now(), signal).catch((error: unknown) => {
      if (ports.provider === undefined) throw error
      return { error }
    })
    if ('error' in found) return beyondReach(task, found.error, ports)
    const { claim, held, isNameTaken } = found
    const plan = planTask({
      task,
      claim,
      isSandboxHeld: held !== undefined,
      isClaimNameTaken: isNameTaken,
      isHeldOverLimit: ports.isHeldOverLimit(uid),
      podProblem: claim && awaitsPod(task, claim) ? await findPodProblem(ports.client, claim) : undefined,
      hasEgressByName: ports.hasEgressByName,
      step: ports.steps.current(uid),
      mayStart: ports.mayStart(uid),
      isPlaceWanted: ports.isPlaceWanted(),
      budgetRefusal: task.spec.limits ? await ports.budgetRefusalOf(uid) : undefined,
      now: ports.clock.now(),
    })
    for (const planned of plan.actions) {
      const eviction = mayBeEviction(planned) ? await findEviction(ports.client, task) : undefined
      await perform(insteadOfLoss(planned, eviction), { task, claim: claim ?? held }, ports)
    }
    return plan.requeueAfterMs === undefined ? {} : { requeueAfterMs: plan.requeueAfterMs }
  }
}

async function recordEnded(
  ports: TaskPorts,
  task: Stored<AgentTask>,
  ended: EndedStep,
): Promise<{ requeueAfterMs: number }> {
  const { uid, name } = task.metadata
  const move = afterStep(task, ended)
  if (move.kind === 'tryAgain') {
    ports.log.warn('task step failed, trying again', { task: name, step: ended.name, ...failureOf(ended) })
    return { requeueAfterMs: move.requeueAfterMs }
  }
  const write = move.isFailure ? appendIfRoom : append
  if (move.events.length > 0) await write(ports, uid, move.events)
  await writeStatus(ports, task, move.change)
  return { requeueAfterMs: 0 }
}

function failureOf(ended: EndedStep): object {
  return 'error' in ended ? { failures: ended.failures, error: ended.error } : {}
}
