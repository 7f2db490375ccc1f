import { isDeepStrictEqual } from 'node:util'
import type { KubeClient } from '@corral/kube'
import { isNotFound, type Pod, type PodStatus, Pods, type Stored } from '@corral/resources'

/** Writes a pod's status when it differs from what was last written or read. */
export interface StatusWriter {
  /** Answers whether the object still exists. Throws where the server did not take the write. */
  write(pod: Stored<Pod>, status: PodStatus): Promise<boolean>
}

export function statusWriter(client: KubeClient): StatusWriter {
  let written: PodStatus | undefined
  return {
    async write(pod, status) {
      if (isDeepStrictEqual(status, written ?? ownPart(pod.status, status))) return true
      const body = { metadata: { uid: pod.metadata.uid }, status: withRemovals(status, written ?? pod.status) }
      try {
        await client.patch(Pods, reference(pod), { type: 'merge', body }, { subresource: 'status' })
        written = status
        return true
      } catch (error) {
        if (isNotFound(error)) return false
        throw error
      }
    },
  }
}

export function reference(pod: Stored<Pod>): { namespace: string; name: string } {
  return { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }
}

/** What a pod may have for a time only. */
const passing = ['reason', 'message', 'podIP', 'podIPs'] as const

/** The fields of the stored status that this node writes, in a form that compares. */
function ownPart(stored: PodStatus | undefined, like: PodStatus): Partial<PodStatus> {
  const keys = new Set([...Object.keys(like), ...passing])
  return Object.fromEntries(Object.entries(stored ?? {}).filter(([key]) => keys.has(key)))
}

/** A merge patch forgets nothing by omission: what went away is sent as null. */
function withRemovals(status: PodStatus, before: PodStatus | undefined): Record<string, unknown> {
  const gone = passing.filter((key) => before?.[key] !== undefined && status[key] === undefined)
  return { ...status, ...Object.fromEntries(gone.map((key) => [key, null])) }
}
