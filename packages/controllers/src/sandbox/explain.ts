import type { ContainerStatus, Pod } from '@corral/resources'

/**
 * Why a Pod is not ready, in one sentence from its own status, or undefined while nothing is wrong yet: image that cannot
 * be pulled, crash loop, out of memory, no node that fits.
 */
export function explainPod(pod: Pod): string | undefined {
  const unscheduled = pod.status?.conditions?.find(
    (condition) => condition.type === 'PodScheduled' && condition.status === 'False',
  )
  if (unscheduled) return sentence('not scheduled', unscheduled.reason, unscheduled.message)
  const all = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
  for (const container of all) {
    const cause = explainContainer(container)
    if (cause) return cause
  }
  if (pod.status?.reason || pod.status?.message) return sentence('pod', pod.status.reason, pod.status.message)
  return undefined
}

/** Waiting reasons of a container that is merely on its way up. */
const ordinary = new Set(['ContainerCreating', 'PodInitializing', undefined])

function explainContainer(container: ContainerStatus): string | undefined {
  const who = `container "${container.name}"`
  const last = container.lastState?.terminated
  if (last?.reason === 'OOMKilled') {
    return `${who} was ended because it ran out of memory (restarts: ${container.restartCount ?? 0})`
  }
  const { waiting, terminated } = container.state ?? {}
  if (waiting && !ordinary.has(waiting.reason)) {
    const exit = last ? `last exit code ${last.exitCode}` : undefined
    return sentence(who, waiting.reason, waiting.message ?? exit)
  }
  if (terminated?.reason === 'OOMKilled') return `${who} was ended because it ran out of memory`
  if (terminated && terminated.exitCode !== 0) {
    return sentence(who, terminated.reason ?? 'Error', terminated.message ?? `exit code ${terminated.exitCode}`)
  }
  return undefined
}

function sentence(subject: string, reason: string | undefined, message: string | undefined): string {
  const said = [reason, message?.trim()].filter(Boolean).join(': ')
  return `${subject}: ${said || 'no reason given'}`.slice(0, 1_000)
}
