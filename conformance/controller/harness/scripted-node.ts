import { setMaxListeners } from 'node:events'
import { createInformer, type KubeClient } from '@corral/kube'
import {
  defineKind,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeObject,
  Leases,
  Nodes,
  type Pod,
  Pods,
  type Stored,
} from '@corral/resources'

/**
 * What becomes of a Pod: a status to report, or `untouched` for one that the scenario writes itself. `ready-unbound` runs
 * and still has no node, which no node does; between unschedulable and ready it leaves no moment in which neither holds.
 */
export type PodFate =
  | 'ready'
  | 'unready'
  | 'no-address'
  | 'succeeded'
  | 'failed'
  | 'unschedulable'
  | 'ready-unbound'
  | 'untouched'

/** Binds and reports Pods as a scheduler and a kubelet would, without running anything. */
export interface ScriptedNode {
  /** Answers for the Pods of one namespace until it is called without a fate; `ready` where no fate is set. */
  script(namespace: string, fate: ((pod: Stored<Pod>) => PodFate) | undefined): void
  /** Looks at the Pods of a namespace again, after the answer of its fate changed. */
  refresh(namespace: string): void
  stop(): Promise<void>
}

export const nodeName = 'scripted-node'
const leaseRenewMs = 8_000

/** Registers the node, keeps its lease so that its Pods are not evicted, and starts to report. */
export async function startScriptedNode(client: KubeClient): Promise<ScriptedNode> {
  const lifetime = new AbortController()
  setMaxListeners(0, lifetime.signal)
  const { signal } = lifetime
  const fates = new Map<string, (pod: Stored<Pod>) => PodFate>()
  const told = new Map<string, PodFate>()
  const bound = new Set<string>()
  const reports = new Map<string, Promise<void>>()
  const work = new Set<Promise<void>>()
  let addresses = 0

  const own = (task: Promise<void>): void => {
    const tracked = task
      .catch((error: unknown) => {
        // A Pod that went away meanwhile needs no report; neither does anything after the end.
        if (!isNotFound(error) && !isConflict(error) && !signal.aborted)
          process.stderr.write(`scripted node: ${String(error)}\n`)
      })
      .finally(() => work.delete(tracked))
    work.add(tracked)
  }

  function see(pod: Stored<Pod>): void {
    const { uid, namespace = '', name, deletionTimestamp, finalizers } = pod.metadata
    if (deletionTimestamp) {
      const now = { gracePeriodSeconds: 0, preconditions: { uid } }
      if (!finalizers?.length) own(client.delete(Pods, { name, namespace }, { ...now, signal }).then(() => {}))
      return
    }
    const fate = fates.get(namespace)?.(pod) ?? 'ready'
    if (fate === 'untouched' || told.get(uid) === fate) return
    told.set(uid, fate)
    // One after the other: a fate that changes early must be the last that is told.
    const next = (reports.get(uid) ?? Promise.resolve()).catch(() => {}).then(() => report(pod, fate))
    reports.set(uid, next)
    own(next)
  }

  async function report(pod: Stored<Pod>, fate: Exclude<PodFate, 'untouched'>): Promise<void> {
    const { uid, name, namespace = '' } = pod.metadata
    const isUnbound = fate === 'unschedulable' || fate === 'ready-unbound'
    if (!isUnbound && !pod.spec?.nodeName && !bound.has(uid)) {
      await bindPod(client, pod, signal)
      bound.add(uid)
    }
    addresses += 1
    const body = { status: statusOf(fate, `100.64.${addresses >> 8}.${addresses & 255}`) }
    await client.patch(Pods, { name, namespace }, { type: 'merge', body }, { subresource: 'status', signal })
  }

  await register(client, signal)
  const renewal = setInterval(() => own(renew(client, signal)), leaseRenewMs)
  const informer = createInformer({ client, kind: Pods, signal })
  informer.subscribe({ add: see, update: see })
  return {
    script(namespace, fate) {
      if (fate) fates.set(namespace, fate)
      else fates.delete(namespace)
    },
    refresh(namespace) {
      for (const pod of informer.list()) if (pod.metadata.namespace === namespace) see(pod)
    },
    async stop() {
      clearInterval(renewal)
      lifetime.abort()
      await informer.stop()
      await Promise.allSettled(work)
    },
  }
}

/** Gives a Pod its node the way a scheduler does; real servers refuse the field in a patch. */
export async function bindPod(client: KubeClient, pod: Stored<Pod>, signal?: AbortSignal): Promise<void> {
  const { name, namespace = '' } = pod.metadata
  const bindings = defineKind<KubeObject & { target: object }>('v1', 'Binding', `pods/${name}/binding`)
  const target = { apiVersion: 'v1', kind: 'Node', name: nodeName }
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace }, target }
  await client.create(bindings, binding, signal ? { signal } : {})
}

async function register(client: KubeClient, signal: AbortSignal): Promise<void> {
  try {
    await client.create(Nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } }, { signal })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
  const now = new Date().toISOString()
  const ready = { type: 'Ready', status: 'True', reason: 'Scripted', message: 'no kubelet', lastHeartbeatTime: now }
  const body = { status: { conditions: [{ ...ready, lastTransitionTime: now }] } }
  await client.patch(Nodes, { name: nodeName }, { type: 'merge', body }, { subresource: 'status', signal })
  await renew(client, signal)
}

async function renew(client: KubeClient, signal: AbortSignal): Promise<void> {
  const renewTime = new Date().toISOString().replace('Z', '000Z')
  const metadata = { name: nodeName, namespace: 'kube-node-lease' }
  const spec = { holderIdentity: nodeName, leaseDurationSeconds: 40, renewTime }
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }
  try {
    await client.apply(Leases, lease, { fieldManager: nodeName, force: true, signal })
  } catch (error) {
    // Without the namespace leases are not watched either.
    if (!isNotFound(error)) throw error
  }
}

function statusOf(fate: Exclude<PodFate, 'untouched'>, ip: string): object {
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+Z/, 'Z')
  const condition = (type: string, isTrue: boolean): object => ({
    type,
    status: isTrue ? 'True' : 'False',
    lastTransitionTime,
  })
  const scheduled = condition('PodScheduled', true)
  const reason = { reason: 'Unschedulable', message: '0/1 nodes are available' }
  const unscheduled = { ...condition('PodScheduled', false), ...reason }
  const address = { podIP: ip, podIPs: [{ ip }] }
  switch (fate) {
    case 'ready':
      return { phase: 'Running', conditions: [scheduled, condition('Ready', true)], ...address }
    case 'unready':
      return { phase: 'Running', conditions: [scheduled, condition('Ready', false)], ...address }
    case 'no-address':
      return { phase: 'Running', conditions: [scheduled, condition('Ready', true)], podIP: null, podIPs: null }
    case 'succeeded':
      return { phase: 'Succeeded', conditions: [scheduled, condition('Ready', false)], ...address }
    case 'failed':
      return { phase: 'Failed', conditions: [scheduled, condition('Ready', false)], ...address }
    case 'unschedulable':
      return { phase: 'Pending', conditions: [unscheduled] }
    case 'ready-unbound':
      return { phase: 'Running', conditions: [unscheduled, condition('Ready', true)], ...address }
  }
}
