import type { KubeClient } from '@corral/kube'
import type { TaskView } from '@corral/protocol'
import { type AgentTask, isConflict, type Stored } from '@corral/resources'
import { isFinished, phaseOf, stage } from '../agent-task/stages.js'
import { TaskError } from '../task-error.js'
import { holdLeftMs, letGoAnnotation } from './hold.js'
import { noteLetGo } from './take-claim.js'

export interface HeldService {
  /** Lets the sandbox of an ended task go before its time. `SandboxNotHeld` where it holds none. */
  release(id: string): Promise<TaskView>
}

/**
 * Lets the sandbox of an ended task go before its time. Safe to repeat. `TaskNotFinished` before the task's end, and
 * `SandboxNotHeld` for one that holds none.
 */
export async function releaseSandbox(
  client: Pick<KubeClient, 'update'>,
  getTask: () => Promise<Stored<AgentTask>>,
  now: () => Date = () => new Date(),
): Promise<Stored<AgentTask>> {
  for (;;) {
    const task = await getTask()
    const { name, annotations } = task.metadata
    if (!isFinished(task))
      throw new TaskError('TaskNotFinished', `task ${name} has not ended yet (${phaseOf(task)})`, {
        hint: `Wait for it, or end it with \`corral task cancel ${name}\`.`,
      })
    if (annotations?.[letGoAnnotation] !== undefined) return task
    if (holdLeftMs(task, now()) === undefined && !isKept(task))
      throw new TaskError('SandboxNotHeld', `task ${name} holds no sandbox`)
    try {
      return await noteLetGo(client, task, 'released')
    } catch (error) {
      if (!isConflict(error)) throw error // a conflicting write: read again
    }
  }
}

function isKept(task: AgentTask): boolean {
  const isWanted = task.spec.keepSandbox === true && stage(task, 'Succeeded')?.status === 'False'
  return task.status?.sandbox !== undefined && (isWanted || task.status.sandbox.kept === true)
}
