import type { KubeClient } from '@corral/kube'
import { type AgentTask, AgentTasks, Leases, type Stored } from '@corral/resources'
import { taskLeaseName } from './elected-task-controller.js'
import { restoredFromAnnotation } from './records/adopt-restored.js'
import { TaskError } from './task-error.js'
import { taskFinalizer } from './task-state/task-marks.js'

export interface RestoreOptions {
  client: Pick<KubeClient, 'find' | 'create' | 'updateStatus'>
  namespace: string
  /** As `kubectl get agenttasks -o json` writes them. */
  tasks: readonly Stored<AgentTask>[]
  now: Date
}

export interface RestoreResult {
  restored: string[]
  /** Names of tasks that are there already, which are left as they are. */
  present: string[]
}

/**
 * Makes tasks of a back-up again, with their ends. A task without its status would run once more, so this refuses to
 * begin while a server of the namespace runs, which could admit one in between. The order is that in which they were
 * accepted: a follow-up names the task before it by uid, and uids are new. Safe to repeat after it was cut short.
 */
export async function restoreTasks(options: RestoreOptions): Promise<RestoreResult> {
  const { client, namespace } = options
  await refuseBesideServer(options)
  const result: RestoreResult = { restored: [], present: [] }
  const uids = new Map<string, string>()
  for (const task of inOrder(options.tasks)) {
    const { name, uid } = task.metadata
    const found = await client.find(AgentTasks, { namespace, name })
    if (found && (found.metadata.annotations?.[restoredFromAnnotation] !== uid || found.status?.phase)) {
      uids.set(uid, found.metadata.uid)
      result.present.push(name)
      continue
    }
    const stored = found ?? (await client.create(AgentTasks, restored(withUids(task, uids), namespace)))
    uids.set(uid, stored.metadata.uid)
    const { status } = withUids(task, uids)
    if (status) await client.updateStatus(AgentTasks, { ...stored, status })
    result.restored.push(name)
  }
  return result
}

async function refuseBesideServer({ client, namespace, now }: RestoreOptions): Promise<void> {
  const lease = await client.find(Leases, { namespace, name: taskLeaseName })
  const { holderIdentity, renewTime, leaseDurationSeconds = 15 } = lease?.spec ?? {}
  if (!holderIdentity || !renewTime || Date.parse(renewTime) + leaseDurationSeconds * 1000 < now.getTime()) return
  throw new TaskError(
    'Conflict',
    `a server runs in namespace ${namespace}: it would start tasks that are half restored`,
    {
      hint: `Restore before the server is installed, or scale it down: \`kubectl -n ${namespace} scale deployment/corral-server --replicas=0\`.`,
    },
  )
}

function inOrder(tasks: readonly Stored<AgentTask>[]): Stored<AgentTask>[] {
  return [...tasks].sort((one, other) => one.metadata.creationTimestamp.localeCompare(other.metadata.creationTimestamp))
}

/** What a server gives an object itself is left out. */
function restored({ apiVersion, kind, metadata, spec }: Stored<AgentTask>, namespace: string): AgentTask {
  return {
    apiVersion,
    kind,
    metadata: {
      name: metadata.name,
      namespace,
      finalizers: [taskFinalizer],
      ...(metadata.labels ? { labels: metadata.labels } : {}),
      annotations: { ...metadata.annotations, [restoredFromAnnotation]: metadata.uid },
    },
    spec,
  }
}

/** The task with the new uids of those before it, wherever it names one; its own stays until it has a new one. */
function withUids(task: Stored<AgentTask>, uids: ReadonlyMap<string, string>): Stored<AgentTask> {
  const { metadata, ...rest } = task
  const text = JSON.stringify(rest).replaceAll(/"[0-9a-f-]{36}"/g, (quoted) => {
    const uid = uids.get(quoted.slice(1, -1))
    return uid === undefined ? quoted : JSON.stringify(uid)
  })
  return { ...(JSON.parse(text) as typeof rest), metadata }
}
