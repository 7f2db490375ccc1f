import type { KubeClient } from '@corral/kube'
import type { TaskView } from '@corral/protocol'
import { type AgentTask, AgentTasks, isConflict, type Stored } from '@corral/resources'
import { TaskError } from '../task-error.js'
import { isFinished, phaseOf, stage } from '../task-state/stages.js'
import { holdLeftMs, type LetGoReason, letGoAnnotation } from './hold.js'

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

/** Notes on an ended task that its sandbox is no longer held. */
export async function noteLetGo(
  client: Pick<KubeClient, 'update'>,
  task: Stored<AgentTask>,
  reason: LetGoReason,
): Promise<Stored<AgentTask>> {
  const annotations = { ...task.metadata.annotations, [letGoAnnotation]: reason }
  return client.update(AgentTasks, { ...task, metadata: { ...task.metadata, annotations } })
}
