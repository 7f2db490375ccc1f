import { type EventSink, eventSink, type KubeClient } from '@corral/kube'
import type { Clock, Logger } from '@corral/ports'
import type { Pod, Stored } from '@corral/resources'

/** Says something about a pod to its users, as a kubelet does. Repeats of the same thing raise one event's count. */
export interface PodEvents {
  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string, container?: string): void
  /** Settles when everything said so far is written or given up. */
  drain(): Promise<void>
}

export function podEvents(options: {
  client: KubeClient
  component: string
  host: string
  clock: Clock
  log: Logger
}): PodEvents {
  const { client, clock, log, host } = options
  const sink: EventSink = eventSink({ client, clock, log, instance: host, api: 'v1' })
  const recorder = sink.recorder(options.component)
  return {
    event(pod, type, reason, message, container) {
      // Pods come from the server; a list leaves out what all its items share.
      const stored = { apiVersion: 'v1', kind: 'Pod', ...pod } as Stored<Pod>
      recorder.record(stored, {
        type,
        reason,
        action: reason,
        note: message,
        ...(container ? { fieldPath: fieldPathOf(pod, container) } : {}),
      })
    },
    drain: () => sink.drain(),
  }
}

function fieldPathOf(pod: Pod, container: string): string {
  const isInit = pod.spec?.initContainers?.some((entry) => entry.name === container)
  return `spec.${isInit ? 'initContainers' : 'containers'}{${container}}`
}
