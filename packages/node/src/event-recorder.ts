import { randomBytes } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import { type Clock, Events, type Logger, type Pod } from '@corral/resources'

/** Says something about a pod to its users. Repeats of the same thing raise one event's count. */
export interface EventRecorder {
  event(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string, container?: string): void
  /** Settles when everything said so far is written or given up. */
  flush(): Promise<void>
}

interface KnownEvent {
  name: string
  count: number
}

const rememberedEvents = 1024
const waitingEvents = 256

/** Events are written one after another in the background: a slow server delays them, never the pods. */
export function eventRecorder(options: {
  client: KubeClient
  component: string
  host: string
  clock: Clock
  log: Logger
}): EventRecorder {
  const { client, clock, log } = options
  const known = new Map<string, KnownEvent>()
  let queue: Promise<void> = Promise.resolve()
  let waiting = 0

  async function write(pod: Pod, type: string, reason: string, message: string, container?: string): Promise<void> {
    const metadata = pod.metadata ?? {}
    const namespace = metadata.namespace ?? 'default'
    const key = [metadata.uid, type, reason, container, message].join('\0')
    const now = clock
      .now()
      .toISOString()
      .replace(/\.\d+Z$/, 'Z')
    const previous = known.get(key)
    if (previous) {
      previous.count++
      const body = { count: previous.count, lastTimestamp: now }
      await client.patch(Events, { namespace, name: previous.name }, { type: 'merge', body })
      return
    }
    const name = `${metadata.name}.${randomBytes(8).toString('hex')}`
    const created = { name, count: 1 }
    if (known.size >= rememberedEvents) known.delete(known.keys().next().value ?? '')
    known.set(key, created)
    await client.create(Events, {
      metadata: { name, namespace },
      involvedObject: {
        apiVersion: 'v1',
        kind: 'Pod',
        namespace,
        ...(metadata.name ? { name: metadata.name } : {}),
        ...(metadata.uid ? { uid: metadata.uid } : {}),
        ...(container ? { fieldPath: fieldPathOf(pod, container) } : {}),
      },
      type,
      reason,
      message: message.slice(0, 1024),
      source: { component: options.component, host: options.host },
      reportingComponent: options.component,
      reportingInstance: options.host,
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    })
  }

  return {
    event(pod, type, reason, message, container) {
      if (waiting >= waitingEvents) return log.debug('event dropped', { reason, message })
      waiting++
      queue = queue
        .then(() => write(pod, type, reason, message, container))
        .catch((error: unknown) => log.debug('event not written', { reason, message, error }))
        .finally(() => {
          waiting--
        })
    },
    flush: () => queue,
  }
}

function fieldPathOf(pod: Pod, container: string): string {
  const isInit = pod.spec?.initContainers?.some((entry) => entry.name === container)
  return `spec.${isInit ? 'initContainers' : 'containers'}{${container}}`
}
