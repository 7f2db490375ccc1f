import type { KubeClient } from '@corral/kube'
import { type AgentTask, findCondition, type Pod, Pods, type SandboxClaim, type Stored } from '@corral/resources'
import { hasPassed, isActive } from '../task-state/stages.js'
import { findPodName } from './pod-eviction.js'

/** What keeps the pod of a sandbox from starting, in Kubernetes' own reason, and how long that may last. */
export interface PodProblem {
  /** As the kubelet or the scheduler says it, e.g. `ImagePullBackOff`. */
  reason: string
  message: string
  /** The cause of a task that gives up over it. */
  code: 'ImagePullFailed' | 'Unschedulable' | 'SandboxCannotStart'
  /** Since the sandbox was asked for: some of these pass, and retries of the kubelet get rarer. */
  patienceMs: number
}

const second = 1_000
/** A cluster that adds a node for the pod takes minutes. */
const untilProvisioned = Number.POSITIVE_INFINITY

const byReason: Readonly<Record<string, Pick<PodProblem, 'code' | 'patienceMs'>>> = {
  InvalidImageName: { code: 'ImagePullFailed', patienceMs: 0 },
  ErrImageNeverPull: { code: 'ImagePullFailed', patienceMs: 0 },
  ErrImagePull: { code: 'ImagePullFailed', patienceMs: 90 * second },
  ImagePullBackOff: { code: 'ImagePullFailed', patienceMs: 90 * second },
  ImageInspectError: { code: 'ImagePullFailed', patienceMs: 90 * second },
  CreateContainerConfigError: { code: 'SandboxCannotStart', patienceMs: 90 * second },
  CreateContainerError: { code: 'SandboxCannotStart', patienceMs: 90 * second },
  RunContainerError: { code: 'SandboxCannotStart', patienceMs: 90 * second },
  CrashLoopBackOff: { code: 'SandboxCannotStart', patienceMs: 90 * second },
}

/** Reads it from the status of the pod. Undefined while the pod is only on its way up. Pure. */
export function podProblemOf(pod: Pod): PodProblem | undefined {
  const scheduled = findCondition(pod.status?.conditions ?? [], 'PodScheduled')
  if (scheduled?.status === 'False')
    return {
      reason: scheduled.reason ?? 'Unschedulable',
      message: scheduled.message ?? 'no node takes the pod',
      code: 'Unschedulable',
      patienceMs: untilProvisioned,
    }
  const containers = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
  for (const { name, state, lastState } of containers) {
    const reason = state?.waiting?.reason
    const known = reason === undefined ? undefined : byReason[reason]
    if (!reason || !known) continue
    const exit = lastState?.terminated ? `it ended with exit code ${lastState.terminated.exitCode}` : undefined
    return { reason, message: `container ${name}: ${state?.waiting?.message ?? exit ?? reason}`, ...known }
  }
  return undefined
}

/** Whether the task waits for the pod of its claim: only then is the pod read, on every pass. Pure. */
export function awaitsPod(task: AgentTask, claim: SandboxClaim): boolean {
  const isReady = findCondition(claim.status?.conditions ?? [], 'Ready')?.status === 'True'
  return isActive(task) && !hasPassed(task, 'SandboxReady') && !isReady
}

/** What keeps the claimed sandbox from starting. A pod that is not there yet, or cannot be read, explains nothing. */
export async function findPodProblem(
  client: Pick<KubeClient, 'find'>,
  claim: Stored<SandboxClaim>,
): Promise<PodProblem | undefined> {
  const { name, namespace = 'default' } = claim.metadata
  try {
    const pod = await client.find(Pods, {
      namespace,
      name: await findPodName(client, namespace, claim.status?.sandbox?.name ?? name),
    })
    return pod && podProblemOf(pod)
  } catch {
    return undefined
  }
}
