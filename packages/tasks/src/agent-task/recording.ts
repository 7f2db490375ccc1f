import type { TaskEventBody } from '@corral/protocol'
import { type AgentTask, AgentTasks, errorCode, type Stored } from '@corral/resources'
import type { EventLogTail } from '../event-log/event-log.js'
import type { TaskPorts } from './task-ports.js'
import { type StatusChange, withStatus } from './task-status.js'

/** Writes one more thing into the task's status. */
export async function writeStatus(
  ports: TaskPorts,
  task: Stored<AgentTask>,
  change: StatusChange,
  now: Date = ports.clock.now(),
): Promise<void> {
  await ports.client.updateStatus(AgentTasks, withStatus(task, change, now))
  ports.log.info('task recorded', {
    task: task.metadata.name,
    condition: change.condition,
    status: change.status,
    reason: change.reason,
  })
}

export async function append(ports: TaskPorts, uid: string, events: readonly TaskEventBody[]): Promise<void> {
  await ports.records.events.append(uid, events)
}

/** How a task ended is recorded even where its log has no room left. */
export async function appendIfRoom(ports: TaskPorts, uid: string, events: readonly TaskEventBody[]): Promise<void> {
  await append(ports, uid, events).catch((error: unknown) => {
    if (errorCode(error) !== 'DiskFull') throw error
    ports.log.error('the disk is full: the event log of a task is incomplete', { task: uid, error })
  })
}

/** Undefined where there was not even room to open the log. */
export async function tailIfRoom(ports: TaskPorts, uid: string): Promise<EventLogTail | undefined> {
  return ports.records.events.tail(uid).catch((error: unknown) => {
    if (errorCode(error) !== 'DiskFull') throw error
    return undefined
  })
}
