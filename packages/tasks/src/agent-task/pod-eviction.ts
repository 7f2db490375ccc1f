import type { KubeClient } from '@corral/kube'
import { type AgentTask, type Pod, Pods, Sandboxes, type Stored } from '@corral/resources'
import type { StepOutcome } from '../steps/step.js'
import { TaskError } from '../task-error.js'

/** What the end of the sandbox's pod means for the task. */
export interface Eviction {
  code: 'DiskLimit' | 'DiskFull' | 'SandboxLost'
  message: string
  /** The pod is gone for good; before that only the agent's processes are, and work can still be taken out. */
  isOver: boolean
}

/** Reads it from the pod as a kubelet leaves it: the reason `Evicted`, or before that the condition. Pure. */
export function evictionOf(pod: Pod): Eviction | undefined {
  const isOver = pod.status?.reason === 'Evicted'
  const target = pod.status?.conditions?.find(
    ({ type, status, reason }) => type === 'DisruptionTarget' && status === 'True' && reason === 'TerminationByKubelet',
  )
  const message = (isOver ? pod.status?.message : target?.message) ?? ''
  if (/low on resource: (ephemeral-storage|inodes)/.test(message)) return { code: 'DiskFull', message, isOver }
  if (/ephemeral|EmptyDir|inode usage/.test(message)) return { code: 'DiskLimit', message, isOver }
  return undefined
}

export type FindEviction = () => Promise<Eviction | undefined>

const podNameAnnotation = 'agents.x-k8s.io/pod-name'

/** The pod of a Sandbox: one taken from a warm pool may carry another name than its Sandbox. */
export async function findPodName(
  client: Pick<KubeClient, 'find'>,
  namespace: string,
  sandboxName: string,
): Promise<string> {
  const sandbox = await client.find(Sandboxes, { namespace, name: sandboxName })
  return sandbox?.metadata.annotations?.[podNameAnnotation] ?? sandboxName
}

/** Whether the task's sandbox is being evicted. A pod that cannot be read explains nothing. */
export async function findEviction(
  client: Pick<KubeClient, 'find'>,
  task: Stored<AgentTask>,
): Promise<Eviction | undefined> {
  const sandboxName = task.status?.sandbox?.sandboxName
  if (!sandboxName) return undefined
  const namespace = task.metadata.namespace ?? 'default'
  try {
    const name = await findPodName(client, namespace, sandboxName)
    const pod = await client.find(Pods, { namespace, name })
    return pod && evictionOf(pod)
  } catch {
    return undefined // The cause without it is told instead.
  }
}

/** Whether somebody deletes the task's sandbox under it. */
export async function findDeletion(
  client: Pick<KubeClient, 'find'>,
  task: Stored<AgentTask>,
): Promise<Eviction | undefined> {
  const name = task.status?.sandbox?.sandboxName
  if (!name) return undefined
  try {
    const sandbox = await client.find(Sandboxes, { namespace: task.metadata.namespace ?? 'default', name })
    if (sandbox && !sandbox.metadata.deletionTimestamp) return undefined
    return { code: 'SandboxLost', message: `the sandbox ${name} was deleted under the task`, isOver: false }
  } catch {
    return undefined // The cause without it is told instead.
  }
}

/** Failures that an agent or command ended by the node looks like. */
const consequences = new Set(['SetupFailed', 'CloneFailed', 'AgentStartFailed', 'ResultFailed', 'SandboxLost'])
const explained = new Set(['AgentKilled', 'AgentFailed', 'DiskFull'])
/** The agent may be seen to end before the node has written why. */
const explainTries = 20
const explainEveryMs = 100

/** Runs a step; where it failed because the node is evicting the sandbox for its disk, that is the cause it tells. */
export async function withEviction(work: Promise<StepOutcome>, find: FindEviction): Promise<StepOutcome> {
  let outcome: StepOutcome
  try {
    outcome = await work
  } catch (error) {
    const isConsequence = error instanceof TaskError && consequences.has(error.code)
    const eviction = await find()
    if (!eviction || !(eviction.isOver || isConsequence)) throw error
    throw new TaskError(eviction.code, eviction.message, { cause: error })
  }
  if (outcome.condition !== 'AgentFinished' || !explained.has(outcome.reason)) return outcome
  for (let tries = outcome.reason === 'AgentFailed' ? 1 : explainTries; tries > 0; tries--) {
    const eviction = await find()
    if (eviction) return { ...outcome, reason: eviction.code, message: eviction.message }
    if (tries > 1) await new Promise((resolve) => setTimeout(resolve, explainEveryMs))
  }
  return outcome
}
