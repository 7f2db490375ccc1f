import { setMaxListeners } from 'node:events'
import { createInformer, type KubeClient } from '@corral/kube'
import { formatTime, isAlreadyExists, isNotFound, Nodes, type Pod, Pods, type Stored } from '@corral/resources'

export interface InstantNodeOptions {
  client: KubeClient
  /** Registered as a Ready node; Pods bound to it are reported. */
  nodeName?: string
  /** Report Pods that no scheduler has bound, for API servers without one. No node is registered then. */
  withoutScheduler?: boolean
  /** From seeing a Pod to reporting it Ready; 0 reports at once. */
  readyAfterMs?: number | ((pod: Stored<Pod>) => number)
  /** What becomes of a Pod; `ready` without it. */
  fate?: (pod: Stored<Pod>) => PodFate
  /** Finish the deletion of Pods that ask for a grace period. */
  finishDeletions?: boolean
  signal?: AbortSignal
}

export type PodFate =
  | 'ready'
  | 'pending'
  | 'unschedulable'
  | 'succeeded'
  | 'failed'
  | 'running-not-ready'
  | 'no-address'

export interface InstantNode {
  /** Settles once the node is registered. */
  readonly ready: Promise<void>
  /** Patches sent so far. */
  readonly patches: number
  /** Looks at every Pod again, after the answer of `fate` changed. */
  refresh(): void
  stop(): Promise<void>
}

/** A node without processes: marks Pods Running and Ready with an address, or whatever `fate` says. */
export function startInstantNode(options: InstantNodeOptions): InstantNode {
  const { client, nodeName = 'instant-node', finishDeletions = true, fate = () => 'ready' } = options
  const lifetime = new AbortController()
  setMaxListeners(0, lifetime.signal)
  const abort = (): void => lifetime.abort()
  options.signal?.addEventListener('abort', abort, { once: true })
  const pending = new Set<Promise<void>>()
  const timers = new Set<NodeJS.Timeout>()
  /** What each Pod, by uid, has been told; its own events come back while the answer is on its way. */
  const told = new Map<string, PodFate>()
  const addresses = new Map<string, string>()
  let patches = 0

  const own = (work: Promise<void>): void => {
    const tracked = work
      .catch((error: unknown) => {
        // A Pod that is gone, or a test that ended, needs no answer.
        if (!isNotFound(error) && !lifetime.signal.aborted) throw error
      })
      .finally(() => pending.delete(tracked))
    pending.add(tracked)
  }

  function see(pod: Stored<Pod>): void {
    if (pod.metadata.deletionTimestamp) {
      if (finishDeletions && !pod.metadata.finalizers?.length) own(finishDeletion(pod))
      return
    }
    if (!options.withoutScheduler && pod.spec?.nodeName !== nodeName) return
    const wanted = fate(pod)
    if (phaseOf(pod) === wanted || told.get(pod.metadata.uid) === wanted) return
    told.set(pod.metadata.uid, wanted)
    const { readyAfterMs = 0 } = options
    const delayMs = typeof readyAfterMs === 'function' ? readyAfterMs(pod) : readyAfterMs
    if (delayMs === 0) {
      own(report(pod, wanted))
      return
    }
    const timer = setTimeout(() => {
      timers.delete(timer)
      own(report(pod, wanted))
    }, delayMs)
    timers.add(timer)
  }

  async function finishDeletion(pod: Stored<Pod>): Promise<void> {
    const { name, namespace = '', uid } = pod.metadata
    const now = { gracePeriodSeconds: 0, preconditions: { uid } }
    await client.delete(Pods, { name, namespace }, { ...now, signal: lifetime.signal })
  }

  async function report(pod: Stored<Pod>, wanted: PodFate): Promise<void> {
    const { name, namespace = '', uid } = pod.metadata
    const signal = lifetime.signal
    patches += 1
    const address = addresses.get(uid) ?? `100.64.${(addresses.size >> 8) & 255}.${addresses.size & 255}`
    addresses.set(uid, address)
    const body = { status: podStatus(wanted, address) }
    await client.patch(Pods, { name, namespace }, { type: 'merge', body }, { subresource: 'status', signal })
  }

  async function register(): Promise<void> {
    const signal = lifetime.signal
    try {
      await client.create(Nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } }, { signal })
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
    }
    const body = {
      status: { conditions: [{ type: 'Ready', status: 'True', reason: 'InstantNode', message: 'ready' }] },
    }
    await client.patch(Nodes, { name: nodeName }, { type: 'merge', body }, { subresource: 'status', signal })
  }

  const ready = options.withoutScheduler ? Promise.resolve() : register()
  ready.catch(() => {}) // callers that await it get the error
  const informer = createInformer({ client, kind: Pods, signal: lifetime.signal })
  informer.subscribe({ add: see, update: see })
  return {
    ready,
    get patches() {
      return patches
    },
    refresh() {
      for (const pod of informer.list()) see(pod)
    },
    async stop() {
      options.signal?.removeEventListener('abort', abort)
      lifetime.abort()
      for (const timer of timers) clearTimeout(timer)
      await informer.stop()
      await Promise.allSettled(pending)
    },
  }
}

/** The fate a Pod's status already shows, so that nothing is reported twice. */
function phaseOf(pod: Pod): PodFate {
  const { phase, conditions = [], podIPs = [] } = pod.status ?? {}
  if (phase === 'Succeeded') return 'succeeded'
  if (phase === 'Failed') return 'failed'
  if (phase === 'Running') {
    if (!conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True'))
      return 'running-not-ready'
    return podIPs.length > 0 ? 'ready' : 'no-address'
  }
  const isUnschedulable = conditions.some((condition) => condition.reason === 'Unschedulable')
  return isUnschedulable ? 'unschedulable' : 'pending'
}

function podStatus(fate: PodFate, address: string): object {
  const now = formatTime(new Date())
  const condition = (type: string, status: string, reason?: string, message?: string): object => ({
    type,
    status,
    lastTransitionTime: now,
    ...(reason && { reason }),
    ...(message && { message }),
  })
  const scheduled = condition('PodScheduled', 'True')
  const addresses = { podIP: address, podIPs: [{ ip: address }] }
  switch (fate) {
    case 'pending':
      return { phase: 'Pending' }
    case 'unschedulable':
      return { phase: 'Pending', conditions: [condition('PodScheduled', 'False', 'Unschedulable', 'no node fits')] }
    case 'running-not-ready':
      return { phase: 'Running', conditions: [scheduled, condition('Ready', 'False')], ...addresses }
    case 'no-address':
      return { phase: 'Running', conditions: [scheduled, condition('Ready', 'True')], podIP: null, podIPs: null }
    case 'succeeded':
      return { phase: 'Succeeded', conditions: [scheduled, condition('Ready', 'False')], ...addresses }
    case 'failed':
      return { phase: 'Failed', conditions: [scheduled, condition('Ready', 'False')], ...addresses }
    case 'ready':
      return { phase: 'Running', conditions: [scheduled, condition('Ready', 'True')], startTime: now, ...addresses }
  }
}
