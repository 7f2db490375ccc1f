import type { TaskEvent, TaskEventBody, TaskView } from '@corral/protocol'
import type { AgentTask, FinalTaskPhase, Stored } from '@corral/resources'
import { heldUntilOf } from '../held/hold.js'
import type { Ending } from '../task-state/ending.js'
import { endCondition } from '../task-state/stages.js'
import { taskView } from '../task-view.js'
import { appendIfRoom, tailIfRoom, writeStatus } from './recording.js'
import { findRefused } from './refused-egress.js'
import type { TaskPorts } from './task-ports.js'
import { causeOf, type StatusChange, withStatus } from './task-status.js'

/**
 * The last event first, then the record: who reads the record finds the log complete. The event carries the task as it
 * is about to be recorded; a pass that finds the event already there records the same end.
 */
export async function finishTask(task: Stored<AgentTask>, ending: Ending, ports: TaskPorts): Promise<void> {
  const uid = task.metadata.uid
  const ok = ending.code === 'Succeeded'
  const recorded = task.status?.cause?.code === ending.code ? task.status.cause : undefined
  const cause = ok ? undefined : (recorded ?? causeOf(ending.code, ending.message, ending.hint))
  const usage = await ports.usageOf(uid)
  const refused = await findRefused(ports.client, task)
  const change: StatusChange = {
    condition: endCondition,
    status: ok ? 'True' : 'False',
    reason: ending.code,
    message: ending.message,
    patch: { ...(cause ? { cause } : {}), ...(usage ? { usage } : {}), ...refused },
  }
  const told = await toldResult(ports, uid)
  const now = told?.task?.times?.finished_at ? new Date(told.task.times.finished_at) : ports.clock.now()
  const heldUntil = heldUntilOf(task, ending, now)
  if (heldUntil && task.status?.sandbox)
    change.patch = { ...change.patch, sandbox: { ...task.status.sandbox, heldUntil: heldUntil.toISOString() } }
  if (!told) await appendIfRoom(ports, uid, [resultEvent(taskView(withStatus(task, change, now), undefined, now))])
  const last = await tailIfRoom(ports, uid)
  await writeStatus(ports, task, { ...change, patch: { ...change.patch, lastEventSequence: last?.sequence ?? 0 } }, now)
  if (!last?.finished) ports.records.events.end(uid)
  ports.finished(task, ending.code)
}

/** The result event that an earlier pass appended before it could record the end. */
async function toldResult(ports: TaskPorts, uid: string): Promise<Extract<TaskEvent, { type: 'result' }> | undefined> {
  const tail = await tailIfRoom(ports, uid)
  if (!tail?.finished) return undefined
  for await (const event of ports.records.events.read(uid)) if (event.type === 'result') return event
  return undefined
}

function resultEvent(task: TaskView): TaskEventBody {
  const { outcome, cause, branch, commit, diff_stat, warnings } = task
  return {
    type: 'result',
    status: task.status as FinalTaskPhase,
    ...(outcome ? { outcome } : {}),
    ...(cause ? { cause } : {}),
    ...(task.pushed && branch ? { branch } : {}),
    ...(commit ? { commit } : {}),
    ...(diff_stat ? { diff_stat } : {}),
    ...(warnings ? { warnings } : {}),
    task,
  }
}
