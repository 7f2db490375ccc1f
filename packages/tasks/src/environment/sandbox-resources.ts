import { setTimeout } from 'node:timers/promises'
import type { KubeClient } from '@corral/kube'
import {
  type AgentTask,
  findCondition,
  imageAnnotation,
  imageCondition,
  imageLacks,
  type Pod,
  Pods,
  resourcesAnnotation,
  resourcesCondition,
  resourcesOfPod,
  resourcesText,
  SandboxClaims,
  type SandboxResources,
  type Stored,
} from '@corral/resources'
import { claimNameOf } from '../held/find-claim.js'
import { TaskError } from '../task-error.js'

type Client = Pick<KubeClient, 'find' | 'patch'>

const applyMs = 60_000
const lookEveryMs = 20

/** The limits the sandbox of a task has by its template. */
export async function sandboxLimits(client: Client, task: Stored<AgentTask>): Promise<SandboxResources> {
  const { namespace = 'default' } = task.metadata
  const name = task.status?.sandbox?.podName
  const pod = name ? await client.find(Pods, { namespace, name }) : undefined
  return pod ? resourcesOfPod(pod) : {}
}

/**
 * Gives the sandbox these limits while it runs and waits for the node to say so. The claim passes its annotations on to the
 * Sandbox, and that to its pod. Safe to repeat.
 */
export async function applyResources(
  client: Client,
  task: Stored<AgentTask>,
  resources: SandboxResources,
  signal: AbortSignal,
): Promise<void> {
  const text = resourcesText(resources)
  await annotate(client, task, { [resourcesAnnotation]: text })
  await until(client, task, `the limits of the sandbox were not changed to "${text}"`, signal, (pod) => {
    const condition = findCondition(pod.status?.conditions ?? [], resourcesCondition)
    if (condition?.status === 'True' && condition.message === text) return true
    const isAnswer = pod.metadata?.annotations?.[resourcesAnnotation] === text
    if (isAnswer && (condition?.reason === 'Infeasible' || condition?.reason === 'Invalid'))
      throw new TaskError('EnvironmentInvalid', `resources: ${condition.message}`, {
        hint: 'Ask for less in `resources` of .corral/environment.yaml, or run the task on a larger machine.',
      })
    return false
  })
}

/**
 * Gives the sandbox the root file system of an imported image and waits until it runs in it: its container is restarted. Safe to
 * repeat. `ToolMissing` where the node has no such image, or one without what every task needs, as soon as the node says so.
 */
export async function applyImage(
  client: Client,
  task: Stored<AgentTask>,
  image: string,
  signal: AbortSignal,
): Promise<void> {
  await annotate(client, task, { [imageAnnotation]: image })
  await until(client, task, `the sandbox does not start in the image "${image}"`, signal, (pod) => {
    const condition = findCondition(pod.status?.conditions ?? [], imageCondition)
    if (!condition?.message?.startsWith(`${image}: `)) return false
    if (condition.reason === 'NotFound')
      throw new TaskError('ToolMissing', `the image ${image} wanted by .corral/environment.yaml was not imported`, {
        hint: `Import it, then retry: corral image import ${image} FILE`,
      })
    const lacks = imageLacks(condition.message)
    if (lacks.length > 0)
      throw new TaskError('ToolMissing', `the image ${image} cannot run a task: it has no ${lacks.join(', no ')}`, {
        hint: `Import one that has them (corral image import ${image} FILE --replace), or make one of Debian: corral image build ${image} --debian PACKAGE --replace`,
      })
    return condition.status === 'True'
  })
}

async function annotate(client: Client, task: Stored<AgentTask>, annotations: Record<string, string>): Promise<void> {
  const { namespace = 'default' } = task.metadata
  await client.patch(
    SandboxClaims,
    { namespace, name: claimNameOf(task) },
    { type: 'merge', body: { spec: { additionalPodMetadata: { annotations } } } },
  )
}

/** Waits for the node's answer in the status of the pod. */
async function until(
  client: Client,
  task: Stored<AgentTask>,
  problem: string,
  signal: AbortSignal,
  isDone: (pod: Pod) => boolean,
): Promise<void> {
  const { namespace = 'default' } = task.metadata
  const podName = task.status?.sandbox?.podName
  const began = Date.now()
  let last: Pod | undefined
  while (Date.now() - began < applyMs) {
    signal.throwIfAborted()
    last = podName ? await client.find(Pods, { namespace, name: podName }) : undefined
    if (!last) throw new TaskError('SandboxLost', `the pod ${podName ?? ''} is gone`)
    if (isDone(last)) return
    await setTimeout(lookEveryMs, undefined, { signal })
  }
  const exit = last?.status?.containerStatuses?.[0]?.lastState?.terminated?.message ?? ''
  throw new TaskError('InternalError', `${problem} within ${applyMs / 1000} s${exit ? `: ${exit.slice(-500)}` : ''}`)
}
