import type { ContainerStatus, Pod } from '@corral/resources'
import { ageOf } from './human-duration.js'

/** What `kubectl get pods` says about a pod. */
export interface PodSummary {
  readonly ready: string
  readonly status: string
  readonly restarts: string
}

interface Progress {
  reason: string
  ready: number
  restarts: number
  lastRestart: string
}

/** Ready count, status word and restarts of a pod, as kubectl users know them. */
export function summarizePod(pod: Pod, now: Date): PodSummary {
  const status = pod.status ?? {}
  const sidecars = new Set(
    (pod.spec?.initContainers ?? []).filter((each) => each.restartPolicy === 'Always').map((each) => each.name),
  )
  const init = walkInitContainers(pod, sidecars)
  const progress =
    init.isInitializing && !isConditionTrue(pod, 'Initialized') ? init : walkContainers(pod, sidecars, init)
  return {
    ready: `${progress.ready}/${(pod.spec?.containers?.length ?? 0) + sidecars.size}`,
    status: deletionReason(pod) ?? (progress.reason || (status.phase ?? '')),
    restarts: restartsText(progress, now),
  }
}

function deletionReason(pod: Pod): string | undefined {
  if (!pod.metadata?.deletionTimestamp) return undefined
  if (pod.status?.reason === 'NodeLost') return 'Unknown'
  const isOver = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
  return isOver ? undefined : 'Terminating'
}

function startReason(pod: Pod): string {
  const isGated = pod.status?.conditions?.some(
    (each) => each.type === 'PodScheduled' && each.reason === 'SchedulingGated',
  )
  return isGated ? 'SchedulingGated' : pod.status?.reason || pod.status?.phase || ''
}

function walkInitContainers(pod: Pod, sidecars: ReadonlySet<string>): Progress & { isInitializing: boolean } {
  const progress = { reason: startReason(pod), ready: 0, restarts: 0, lastRestart: '', isInitializing: false }
  for (const [i, container] of (pod.status?.initContainerStatuses ?? []).entries()) {
    countRestarts(progress, container)
    const { terminated, waiting } = container.state ?? {}
    if (terminated?.exitCode === 0) continue
    if (sidecars.has(container.name) && container.started) {
      if (container.ready) progress.ready++
      continue
    }
    progress.isInitializing = true
    if (terminated) progress.reason = `Init:${terminatedReason(terminated)}`
    else if (waiting?.reason && waiting.reason !== 'PodInitializing') progress.reason = `Init:${waiting.reason}`
    else progress.reason = `Init:${i}/${pod.spec?.initContainers?.length ?? 0}`
    break
  }
  return progress
}

function walkContainers(pod: Pod, sidecars: ReadonlySet<string>, init: Progress): Progress {
  const progress: Progress = { reason: init.reason, ready: init.ready, restarts: 0, lastRestart: '' }
  for (const container of pod.status?.initContainerStatuses ?? []) {
    if (sidecars.has(container.name)) countRestarts(progress, container)
  }
  let isSomeRunning = false
  // From the last to the first, so that the first container has the last word.
  for (const container of [...(pod.status?.containerStatuses ?? [])].reverse()) {
    countRestarts(progress, container)
    const { waiting, terminated, running } = container.state ?? {}
    if (waiting?.reason) progress.reason = waiting.reason
    else if (terminated) progress.reason = terminatedReason(terminated)
    else if (container.ready && running) {
      isSomeRunning = true
      progress.ready++
    }
  }
  if (progress.reason === 'Completed' && isSomeRunning) {
    progress.reason = isConditionTrue(pod, 'Ready') ? 'Running' : 'NotReady'
  }
  return progress
}

function terminatedReason(terminated: { reason?: string; signal?: number; exitCode: number }): string {
  if (terminated.reason) return terminated.reason
  return terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`
}

function countRestarts(progress: Progress, container: ContainerStatus): void {
  progress.restarts += container.restartCount ?? 0
  const finishedAt = container.lastState?.terminated?.finishedAt ?? ''
  if (finishedAt > progress.lastRestart) progress.lastRestart = finishedAt
}

function restartsText(progress: Progress, now: Date): string {
  if (progress.restarts === 0 || !progress.lastRestart) return String(progress.restarts)
  return `${progress.restarts} (${ageOf(progress.lastRestart, now)} ago)`
}

function isConditionTrue(pod: Pod, type: string): boolean {
  return pod.status?.conditions?.some((each) => each.type === type && each.status === 'True') ?? false
}
