import type { KubeClient } from '@corral/kube'
import { type AgentTask, AgentTasks, isConflict, type Stored } from '@corral/resources'
import { continuedByAnnotation } from './follow-up.js'

/** How long a follow-up that was given the branch may take to exist; one that was refused gives way after that. */
const creationMs = 60_000

/**
 * Gives the branch of an ended task to the follow-up of this name, before it is created. False where another follow-up
 * has it. Of two at the same moment the API server lets one write.
 */
export async function takeBranch(
  client: Pick<KubeClient, 'find' | 'get' | 'update'>,
  former: Stored<AgentTask>,
  followUp: string,
  now: Date = new Date(),
): Promise<boolean> {
  const { namespace = 'default', name } = former.metadata
  for (let task = former; ; task = await client.get(AgentTasks, { namespace, name })) {
    const [holder, since = ''] = task.metadata.annotations?.[continuedByAnnotation]?.split(' ') ?? []
    if (holder === followUp) return true
    if (holder && now.getTime() - Date.parse(since) < creationMs) return false
    if (holder && (await client.find(AgentTasks, { namespace, name: holder }))) return false
    const annotations = { ...task.metadata.annotations, [continuedByAnnotation]: `${followUp} ${now.toISOString()}` }
    try {
      await client.update(AgentTasks, { ...task, metadata: { ...task.metadata, annotations } })
      return true
    } catch (error) {
      if (!isConflict(error)) throw error
    }
  }
}
