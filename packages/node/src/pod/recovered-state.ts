import type { ContainerStatus, Pod } from '@corral/resources'
import { type ContainerState, type FinishedRun, newContainerState, rolesOf } from '../records/container-state.js'
import type { PodRecord } from '../records/pod-directories.js'
import { lostRun } from './finished-run.js'

/**
 * What the node knows of a pod's containers when it sees the pod for the first time in its life: from its own record,
 * else from the status an earlier node wrote, else nothing. A container that ran then and has no cell now is lost.
 */
export function recoverContainers(
  pod: Pod,
  record: PodRecord | undefined,
  hasCell: (container: string) => boolean,
  now: Date,
): Map<string, ContainerState> {
  const states = new Map<string, ContainerState>()
  for (const { container } of rolesOf(pod.spec!)) {
    const known = record?.containers.find((state) => state.name === container.name)
    const remembered = known ? settled(known) : fromStatus(container.name, statusOf(pod, container.name))
    states.set(container.name, hasCell(container.name) ? remembered : withoutRun(remembered, now))
  }
  return states
}

/** What only the earlier process could carry on is dropped; the plan decides anew. */
function settled(state: ContainerState): ContainerState {
  const { unhealthy: _unhealthy, stopping: _stopping, waiting: _waiting, ...kept } = state
  return kept
}

function withoutRun(state: ContainerState, now: Date): ContainerState {
  if (!state.run) return state
  const { run, ...rest } = state
  const exit = lostRun(state.launched - 1, run.startedAt, now)
  // Losing its keeper says nothing about the container, so the next start does not wait longer for it.
  return { ...rest, exit, started: false, ready: false }
}

function statusOf(pod: Pod, name: string): ContainerStatus | undefined {
  return [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])].find(
    (status) => status.name === name,
  )
}

function fromStatus(name: string, status: ContainerStatus | undefined): ContainerState {
  const fresh = newContainerState(name)
  if (!status?.containerID) return fresh
  const launched = status.restartCount + 1
  const over = status.state?.terminated ?? (status.state?.waiting ? status.lastState?.terminated : undefined)
  const exit: FinishedRun | undefined = over && {
    attempt: launched - 1,
    startedAt: over.startedAt ?? '',
    finishedAt: over.finishedAt ?? '',
    exitCode: over.exitCode,
    reason: over.reason ?? 'Error',
    ...(over.message ? { message: over.message } : {}),
  }
  const startedAt = status.state?.running?.startedAt
  return { ...fresh, launched, ...(exit ? { exit, crashes: 1 } : {}), ...(startedAt ? { run: { startedAt } } : {}) }
}
