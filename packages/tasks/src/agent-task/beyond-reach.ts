import { type AgentTask, AgentTasks, type Stored } from '@corral/resources'
import { hasPassed, isFinished, stage } from '../task-state/stages.js'
import { taskLimits } from '../task-state/task-limits.js'
import { taskFinalizer } from '../task-state/task-marks.js'
import { finishTask } from './finish.js'
import { writeStatus } from './recording.js'
import type { TaskPorts } from './task-ports.js'

const askAgainMs = 5_000

/**
 * A task whose cluster does not answer. Without a sandbox yet it says so and ends when it was cancelled or has waited as
 * long as any task waits for one. One that has a sandbox goes on when the cluster answers again: its agent runs there.
 */
export async function beyondReach(
  task: Stored<AgentTask>,
  error: unknown,
  ports: TaskPorts,
): Promise<{ requeueAfterMs: number }> {
  const reason = error instanceof Error ? error.message : String(error)
  const message = `the cluster of provider "${ports.provider}" does not answer: ${reason}`
  ports.log.warn('a cluster does not answer', { task: task.metadata.name, provider: ports.provider, error })
  const again = { requeueAfterMs: askAgainMs }
  if (isFinished(task) || hasPassed(task, 'SandboxReady')) return again
  if (task.spec.cancelRequested || task.metadata.deletionTimestamp) {
    await finishTask(task, { code: 'Cancelled', message: 'the task was cancelled' }, ports)
    return again
  }
  const waitedMs = ports.clock.now().getTime() - Date.parse(task.metadata.creationTimestamp)
  if (waitedMs > taskLimits.provisioningMs) {
    await finishTask(task, { code: 'ProviderUnreachable', message }, ports)
    return again
  }
  const told = { condition: 'SandboxReady', status: 'Unknown', reason: 'ProviderUnreachable', message } as const
  if (stage(task, 'SandboxReady')?.reason !== told.reason) await writeStatus(ports, task, told)
  return again
}

/** A task whose provider was removed: it ends, and one that is deleted goes. Its claim has a shutdown time of its own. */
export async function withoutProvider(task: Stored<AgentTask>, ports: TaskPorts): Promise<Record<string, never>> {
  const { finalizers = [], deletionTimestamp } = task.metadata
  const provider = task.spec.sandbox?.provider ?? ''
  if (!isFinished(task)) {
    ports.steps.abort(task.metadata.uid)
    const message = `there is no provider "${provider}" of sandboxes any more`
    await finishTask(task, { code: 'ProviderUnreachable', message }, ports)
  } else if (deletionTimestamp && finalizers.includes(taskFinalizer)) {
    ports.steps.forget(task.metadata.uid)
    await ports.records.remove(task.metadata.uid)
    const left = finalizers.filter((name) => name !== taskFinalizer)
    await ports.client.update(AgentTasks, { ...task, metadata: { ...task.metadata, finalizers: left } })
  }
  return {}
}
