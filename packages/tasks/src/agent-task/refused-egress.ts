import type { KubeClient } from '@corral/kube'
import { type AgentTask, type AgentTaskStatus, Pods, readEgressRefused, type Stored } from '@corral/resources'

/** As many destinations as people read; the pod's annotation has the rest. */
const maxHosts = 20

/**
 * What the node refused to the task's sandbox, most asked for first. A pod that cannot be read explains nothing, and
 * the task ends without it.
 */
export async function findRefused(
  client: Pick<KubeClient, 'find'>,
  task: Stored<AgentTask>,
): Promise<Pick<AgentTaskStatus, 'refused'>> {
  const name = task.status?.sandbox?.podName
  if (!name) return {}
  try {
    const pod = await client.find(Pods, { namespace: task.metadata.namespace ?? 'default', name })
    return refusedOf(pod?.metadata.annotations)
  } catch {
    return {}
  }
}

/** The part of a status that the annotation of a pod stands for. Pure. */
export function refusedOf(annotations: Readonly<Record<string, string>> | undefined): Pick<AgentTaskStatus, 'refused'> {
  const hosts = readEgressRefused(annotations)?.refused ?? []
  if (hosts.length === 0) return {}
  const refused = [...hosts]
    .sort((a, b) => b.count - a.count)
    .slice(0, maxHosts)
    .map(({ host, port, reason, count, process }) => ({
      host,
      ...(port === undefined ? {} : { port }),
      reason,
      count,
      ...(process === undefined ? {} : { process }),
    }))
  return { refused }
}
