import { type AgentTask, AgentTasks, type Stored } from '@corral/resources'
import { phaseOf } from '../agent-task/stages.js'
import type { TaskPorts } from '../agent-task/task-ports.js'
import { prolongClaim } from '../plan-approval/perform-waiting.js'
import { isAwaitingInput, questionExpiryMs, type TalkReport, withTalk } from './question-status.js'

/** Records what the agent asks and has read. A sandbox whose agent begins to wait is kept for as long as that may take. */
export async function recordTalk(report: TalkReport, task: Stored<AgentTask>, ports: TaskPorts): Promise<void> {
  const told = withTalk(task, report, ports.clock.now())
  const expiryMs = questionExpiryMs(told)
  const isLater = expiryMs !== undefined && expiryMs > (questionExpiryMs(task) ?? 0)
  if (isLater) await prolongClaim(task, ports, new Date(expiryMs))
  const next = { ...told, status: { ...told.status, phase: phaseOf(told) } }
  await ports.client.updateStatus(AgentTasks, next)
  ports.log.info('task recorded', {
    task: task.metadata.name,
    phase: next.status.phase,
    waits: isAwaitingInput(next),
    read: report.read.length,
  })
}
