import { EventEmitter, once } from 'node:events'
import { createInformer, type KubeClient } from '@corral/kube'
import { anySignal } from '@corral/protocol'
import {
  EventsV1,
  type KubeObject,
  NetworkPolicies,
  PersistentVolumeClaims,
  Pods,
  type ResourceKind,
  SandboxClaims,
  Sandboxes,
  SandboxTemplates,
  SandboxWarmPools,
  Services,
  type Stored,
} from '@corral/resources'

/** Everything that a scenario is about, by the name it is observed under. */
export const observed: Readonly<Record<string, ResourceKind<KubeObject>>> = {
  sandboxes: Sandboxes,
  sandboxclaims: SandboxClaims,
  sandboxtemplates: SandboxTemplates,
  sandboxwarmpools: SandboxWarmPools,
  pods: Pods,
  services: Services,
  persistentvolumeclaims: PersistentVolumeClaims,
  networkpolicies: NetworkPolicies,
  events: EventsV1,
}

/** Knows when something last changed, from one watch per kind: asking each namespace again and again would keep the server busy. */
export interface Activity {
  /** When the last change in a namespace was seen; 0 where nothing is known. */
  lastChangeMs(namespace: string): number
  /** Settles at the next change in a namespace, or after the given time. Rejects when the signal aborts. */
  nextChange(namespace: string, withinMs: number, signal: AbortSignal): Promise<void>
  /** Whether these objects are what was seen last in a namespace, all of it. */
  isLatest(namespace: string, objects: readonly Stored<KubeObject>[]): boolean
  stop(): Promise<void>
}

interface Seen {
  lastChangeMs: number
  readonly versions: Map<string, string>
}

/** Follows every kind in every namespace; settles once it knows what is there. */
export async function startActivity(client: KubeClient): Promise<Activity> {
  const namespaces = new Map<string, Seen>()
  const changes = new EventEmitter().setMaxListeners(0)
  const note = ({ metadata }: Stored<KubeObject>, isGone = false): void => {
    const { namespace = '', uid, resourceVersion } = metadata
    const seen = namespaces.get(namespace) ?? { lastChangeMs: 0, versions: new Map() }
    namespaces.set(namespace, seen)
    seen.lastChangeMs = Date.now()
    if (isGone) seen.versions.delete(uid)
    else seen.versions.set(uid, resourceVersion)
    changes.emit(namespace)
  }
  const informers = Object.values(observed).map((kind) => createInformer({ client, kind }))
  for (const informer of informers)
    informer.subscribe({ add: note, update: (object) => note(object), delete: (object) => note(object, true) })
  await Promise.all(informers.map((informer) => informer.hasSynced))
  return {
    lastChangeMs: (namespace) => namespaces.get(namespace)?.lastChangeMs ?? 0,
    async nextChange(namespace, withinMs, signal) {
      const tired = AbortSignal.timeout(withinMs)
      await once(changes, namespace, { signal: anySignal([signal, tired]) }).catch(() => signal.throwIfAborted())
    },
    isLatest(namespace, objects) {
      const versions = namespaces.get(namespace)?.versions ?? new Map()
      return (
        versions.size === objects.length &&
        objects.every(({ metadata }) => versions.get(metadata.uid) === metadata.resourceVersion)
      )
    },
    async stop() {
      await Promise.all(informers.map((informer) => informer.stop()))
    },
  }
}
