import type { KubeClient } from '@corral/kube'
import {
  type AgentTask,
  findCondition,
  type Pod,
  Pods,
  parseResources,
  podNameOf,
  readOomKills,
  resourcesAnnotation,
  resourcesOfPod,
  Sandboxes,
  type Stored,
} from '@corral/resources'
import type { StepOutcome } from '../steps/step.js'
import { TaskError } from '../task-error.js'
import type { TaskAction } from './plan.js'

/** What the end of the sandbox's pod means for the task. */
export interface Eviction {
  code: 'DiskLimit' | 'DiskFull' | 'SandboxLost' | 'OutOfMemory'
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

/** `hasOomKill`: the daemon has counted one, so that the pod is asked for its limit alone. */
export type FindEviction = (hasOomKill?: boolean) => Promise<Eviction | undefined>

/** The pod of a Sandbox: one taken from a warm pool may carry another name than its Sandbox. */
export async function findPodName(
  client: Pick<KubeClient, 'find'>,
  namespace: string,
  sandboxName: string,
): Promise<string> {
  const sandbox = await client.find(Sandboxes, { namespace, name: sandboxName })
  return sandbox ? podNameOf(sandbox) : sandboxName
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

/** Whether the loss of a sandbox that an action answers may have been an eviction: then the pod is read first. Pure. */
export function mayBeEviction(action: TaskAction): boolean {
  return action.kind === 'startAgain' || (action.kind === 'finish' && action.ending.code === 'SandboxLost')
}

/** An evicted sandbox ends the task with what it was evicted for: another one would fill the disk again. Pure. */
export function insteadOfLoss(action: TaskAction, eviction: Eviction | undefined): TaskAction {
  return eviction ? { kind: 'finish', ending: eviction } : action
}

const wantOfMemory = 'the kernel ended a process of the sandbox for want of memory'

/** Whether the kernel ended a process of the pod for want of memory since the agent, or before it set-up, started. Pure. */
export function oomKillOf(pod: Pod, since: string | undefined): Eviction | undefined {
  const found = readOomKills(pod.metadata?.annotations)
  if (!found || (since !== undefined && Date.parse(found.lastAt) < Date.parse(since))) return undefined
  return outOfMemory(pod)
}

function outOfMemory(pod: Pod): Eviction {
  const own = parseResources(pod.metadata?.annotations?.[resourcesAnnotation] ?? '')
  const memory = own?.memory ?? resourcesOfPod(pod).memory
  const limit = memory === undefined ? '' : ` (its limit is ${memory})`
  return { code: 'OutOfMemory', message: `${wantOfMemory}${limit}`, isOver: false }
}

/** The same for the pod of a task; with `isKnown` the node's note is not needed. */
export async function findOomKill(
  client: Pick<KubeClient, 'find'>,
  task: Stored<AgentTask>,
  isKnown = false,
): Promise<Eviction | undefined> {
  const { namespace = 'default' } = task.metadata
  const name = task.status?.sandbox?.podName
  try {
    const pod = name ? await client.find(Pods, { namespace, name }) : undefined
    if (pod && isKnown) return outOfMemory(pod)
    // Conditions count whole seconds: set-up may have run out of memory in the second the agent started.
    const started = findCondition(task.status?.conditions ?? [], 'AgentStarted')
    const since = started && (task.status?.times?.runningAt ?? started.lastTransitionTime)
    return pod && oomKillOf(pod, since)
  } catch {
    return undefined // The cause without it is told instead.
  }
}

/** Whether the Sandbox object was deleted while the task uses it. */
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
const consequences = new Set([
  ...['SetupFailed', 'CloneFailed', 'AgentStartFailed', 'ResultFailed', 'SandboxLost'],
  // Of the machine or of the sandbox alone: the node knows which.
  'DiskFull',
])
const explainedReasons = new Set(['AgentKilled', 'AgentFailed', 'DiskFull'])
/** The agent may be seen to end before the node has written why. An agent that failed mostly did so by itself. */
const explainTries = 20
const failedTries = 15
/** What a shell ends with whose command was killed. */
const killedExitCode = 137
const explainEveryMs = 100

/** Does the work; where it failed because of what the node did to the sandbox, that is the cause it tells. */
export async function explained<T>(work: Promise<T>, find: FindEviction): Promise<T> {
  try {
    return await work
  } catch (error) {
    const failure = error instanceof TaskError ? error : undefined
    const isConsequence = failure !== undefined && consequences.has(failure.code)
    const isKilled = failure?.message.includes(`exit code ${killedExitCode}`) === true
    const isFinal = failure?.details.isFinal === true
    const eviction = await findWithin(find, isKilled || isFinal ? explainTries : 1)
    if (!eviction || !(eviction.isOver || isConsequence)) throw error
    // A command that ran out of memory failed at its own stage, where a retry begins.
    if (failure && eviction.code === 'OutOfMemory')
      throw new TaskError(failure.code, `${failure.message}; ${eviction.message}`, {
        cause: error,
        ...(failure.hint ? { hint: failure.hint } : {}),
      })
    throw new TaskError(eviction.code, eviction.message, { cause: error })
  }
}

/** Runs a step, and explains its failure and that of an agent by what the node did to the sandbox. */
export async function withEviction(work: Promise<StepOutcome>, find: FindEviction): Promise<StepOutcome> {
  const outcome = await explained(work, find)
  if (outcome.condition !== 'AgentFinished' || !explainedReasons.has(outcome.reason)) return outcome
  const { oomKills } = outcome
  const eviction = await findWithin(() => find((oomKills ?? 0) > 0), triesFor(outcome))
  const isMemory = eviction?.code === 'OutOfMemory'
  if (eviction && !isMemory) return { ...outcome, reason: eviction.code, message: eviction.message }
  // What the daemon counted is of the agent's own time; the node's note may be of set-up.
  if (outcome.reason === 'DiskFull' || oomKills === 0 || !(eviction || oomKills)) return outcome
  return {
    ...outcome,
    reason: 'OutOfMemory',
    message: `${outcome.message ?? 'the agent ended'}: ${eviction?.message ?? wantOfMemory}`,
  }
}

/** How long the node may take to say why. Where the daemon knows of memory, only a killed agent may have been evicted. */
function triesFor({ reason, status, oomKills }: StepOutcome): number {
  if (oomKills) return 1
  if (reason !== 'AgentFailed' || status?.exitCode === killedExitCode) return explainTries
  return oomKills === undefined ? failedTries : 1
}

/** Asks until there is an answer, or as often as said. */
async function findWithin(find: FindEviction, most: number): Promise<Eviction | undefined> {
  for (let tries = most; tries > 0; tries--) {
    const eviction = await find()
    if (eviction) return eviction
    if (tries > 1) await new Promise((resolve) => setTimeout(resolve, explainEveryMs))
  }
  return undefined
}
