import { type AgentTask, AgentTasks, isAlreadyExists, type Stored } from '@corral/resources'
import { taskFrom } from '../task-request.js'
import { followUpOf } from '../thread/follow-up.js'
import { joinedMessages, queuedFollowUpAnnotation, queuedFollowUpName } from '../thread/queued-messages.js'
import { takeBranch } from '../thread/take-branch.js'
import type { TaskPorts } from './task-ports.js'

/** Makes the follow-up that the messages of an ended task wait for, once: what it became is noted on the former. */
export async function continueThread(task: Stored<AgentTask>, { client, clock, log }: TaskPorts): Promise<void> {
  const { namespace = 'default', uid } = task.metadata
  const name = queuedFollowUpName(uid)
  const message = joinedMessages(task)
  const isBranchFree = !message.new_branch && (await takeBranch(client, task, name, clock.now()))
  const { request, continues } = followUpOf(task, message, { isBranchFree })
  const followUp = taskFrom(request, {
    ...{ name, namespace, agent: task.spec.agent, continues },
    ...{ fingerprint: undefined, retryOf: undefined, retry: undefined },
    acceptedAt: clock.now().toISOString().replace(/Z$/, '000Z'),
  })
  await client.create(AgentTasks, followUp).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
  const former = await client.get(AgentTasks, { namespace, name: task.metadata.name })
  const annotations = { ...former.metadata.annotations, [queuedFollowUpAnnotation]: name }
  await client.update(AgentTasks, { ...former, metadata: { ...former.metadata, annotations } })
  log.info('queued messages became a follow-up', { task: task.metadata.name, followUp: name })
}
