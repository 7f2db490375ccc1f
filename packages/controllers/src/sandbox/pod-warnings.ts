import { createInformer, type KubeClient } from '@corral/kube'
import type { Logger } from '@corral/ports'
import { Events, type Pod, type Stored } from '@corral/resources'

/** What the cluster last complained about a Pod. */
export interface PodWarnings {
  /** `reason: message` of the latest warning that still says something, or undefined. */
  latest(pod: Stored<Pod>): string | undefined
  stop(): Promise<void>
}

export interface PodWarningPorts {
  client: KubeClient
  log: Logger
  signal: AbortSignal
  /** A Pod, by name, has a new warning. */
  onChange(pod: { namespace: string; name: string }): void
}

interface Warning {
  readonly atMs: number
  readonly reason: string
  readonly message: string
}

/**
 * Follows the warnings about Pods that schedulers, kubelets and volume controllers leave. Nothing depends on them but
 * words in a condition, so a server that does not let us read events costs an explanation and nothing else.
 */
export function watchPodWarnings({ client, log, signal, onChange }: PodWarningPorts): PodWarnings {
  const informer = createInformer({
    client,
    kind: Events,
    fieldSelector: 'involvedObject.kind=Pod,type=Warning',
    indexers: { pod: ({ involvedObject }) => (involvedObject?.uid ? [involvedObject.uid] : []) },
    log,
    signal,
  })
  const tell = ({
    involvedObject,
    metadata,
  }: {
    involvedObject?: { name?: string }
    metadata: { namespace?: string }
  }) => {
    if (involvedObject?.name) onChange({ namespace: metadata.namespace ?? '', name: involvedObject.name })
  }
  informer.subscribe({ add: tell, update: tell })
  return {
    latest: (pod) => {
      const warnings = informer.byIndex('pod', pod.metadata.uid).map(
        (event): Warning => ({
          atMs: Date.parse(event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp),
          reason: event.reason ?? '',
          message: event.message ?? '',
        }),
      )
      return describeWarning(pod, warnings)
    },
    stop: () => informer.stop(),
  }
}

/** The latest warning in words. One about scheduling says nothing any more once the Pod has a node. */
export function describeWarning(pod: Stored<Pod>, warnings: readonly Warning[]): string | undefined {
  const hasNode = Boolean(pod.spec?.nodeName)
  const [latest] = warnings
    .filter(({ reason }) => !(hasNode && reason === 'FailedScheduling'))
    .sort((a, b) => b.atMs - a.atMs)
  if (!latest) return undefined
  return [latest.reason, latest.message.trim()].filter(Boolean).join(': ').slice(0, 1_000)
}
