import { type AgentTask, AgentTasks, type Stored } from '@corral/resources'
import { isAwaitingInput, questionExpiryMs, type TalkReport, withTalk } from '../questions/question-status.js'
import { phaseOf } from '../task-state/stages.js'
import { prolongClaim } from './perform-waiting.js'
import type { TaskPorts } from './task-ports.js'

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
