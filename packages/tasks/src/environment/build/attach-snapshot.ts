import { setTimeout } from 'node:timers/promises'
import type { KubeClient } from '@corral/kube'
import {
  type AgentTask,
  isNotFound,
  type Pod,
  Pods,
  SandboxClaims,
  type Stored,
  snapshotAnnotation,
  snapshotCondition,
} from '@corral/resources'
import { claimNameOf } from '../../held/find-claim.js'
import { TaskError } from '../../task-error.js'

type Client = Pick<KubeClient, 'find' | 'patch'>

const attachMs = 120_000
/** The node answers in milliseconds; a copy, where it cannot mount, takes longer and is looked at less often. */
const firstLooksMs = 10
const laterLooksMs = 100

/** What the claim says its pod is to have. */
export async function attachedSnapshot(client: Client, task: Stored<AgentTask>): Promise<string | undefined> {
  const { namespace = 'default' } = task.metadata
  const claim = await client.find(SandboxClaims, { namespace, name: claimNameOf(task) })
  return claim?.spec.additionalPodMetadata?.annotations?.[snapshotAnnotation] || undefined
}

/** See `EnvironmentBuilds`. The claim passes its annotations on to the Sandbox, and that to its pod. */
export async function attachSnapshot(
  client: Client,
  task: Stored<AgentTask>,
  snapshot: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { namespace = 'default' } = task.metadata
  const name = claimNameOf(task)
  const annotations = { [snapshotAnnotation]: snapshot }
  const podName = task.status?.sandbox?.podName
  if ((await attachedSnapshot(client, task)) !== snapshot) {
    await client.patch(
      SandboxClaims,
      { namespace, name },
      { type: 'merge', body: { spec: { additionalPodMetadata: { annotations } } } },
    )
    if (podName) await tellPod(client, { namespace, name: podName }, annotations)
  }
  const began = Date.now()
  let word = 'the node does not say'
  while (Date.now() - began < attachMs) {
    signal.throwIfAborted()
    const pod = podName ? await client.find(Pods, { namespace, name: podName }) : undefined
    if (!pod) throw new TaskError('SandboxLost', `the pod ${podName ?? ''} is gone`)
    const condition = conditionOf(pod)
    if (condition?.message?.startsWith(`${snapshot}: `)) {
      if (condition.status === 'True') return true
      if (condition.reason === 'NotFound') return false
      if (condition.reason === 'AlreadyAttached') throw new TaskError('SandboxLost', condition.message)
      word = condition.message
    }
    await setTimeout(Date.now() - began < 1_000 ? firstLooksMs : laterLooksMs, undefined, { signal })
  }
  throw new TaskError('InternalError', `the snapshot ${snapshot} was not attached within ${attachMs / 1000} s: ${word}`)
}

/** What the claim says reaches the pod by itself, after two controllers have looked: the node can begin before that. */
async function tellPod(
  client: Client,
  pod: { namespace: string; name: string },
  annotations: Record<string, string>,
): Promise<void> {
  await client.patch(Pods, pod, { type: 'merge', body: { metadata: { annotations } } }).catch((error: unknown) => {
    // The loop that waits for it says so.
    if (!isNotFound(error)) throw error
  })
}

const conditionOf = (pod: Pod) => pod.status?.conditions?.find(({ type }) => type === snapshotCondition)
