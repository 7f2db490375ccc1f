import { type AgentTask, AgentTasks, isAlreadyExists, type Stored } from '@corral/resources'
import { allAttempts, groupCompleteAnnotation } from '../task-state/group.js'
import type { TaskPorts } from './task-ports.js'

/**
 * Makes the attempts that are missing and notes that all are there. The first one is made first, before its siblings: once
 * it exists, all of them will, whatever becomes of the process that was asked for them.
 */
export async function completeGroup(task: Stored<AgentTask>, { client, log }: TaskPorts): Promise<void> {
  for (const attempt of allAttempts(task).slice(1)) {
    const made = await client.create(AgentTasks, attempt).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error
      return undefined
    })
    if (made) log.info('an attempt that was missing was made', { task: attempt.metadata?.name, of: task.metadata.name })
  }
  const annotations = { ...task.metadata.annotations, [groupCompleteAnnotation]: 'true' }
  await client.update(AgentTasks, { ...task, metadata: { ...task.metadata, annotations } })
}
