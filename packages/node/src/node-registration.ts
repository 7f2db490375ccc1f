import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeClient } from '@corral/kube'
import { type Clock, isAlreadyExists, isNotFound, Leases, type Logger, Nodes } from '@corral/resources'
import { type NodeFacts, nodeObject } from './node-object.js'

export interface RegistrationOptions {
  client: KubeClient
  facts: NodeFacts
  clock: Clock
  log: Logger
  signal: AbortSignal
}

const heartbeatMs = 10_000
const leaseNamespace = 'kube-node-lease'
const leaseDurationSeconds = 40

/** Creates the Node object or brings it up to date. Safe to repeat. */
export async function registerNode({ client, facts, clock, signal }: RegistrationOptions): Promise<void> {
  const { status, ...wanted } = nodeObject(facts, clock.now())
  try {
    await client.create(Nodes, wanted, { signal })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    const body = { metadata: { labels: wanted.metadata?.labels } }
    await client.patch(Nodes, { name: facts.name }, { type: 'merge', body }, { signal })
  }
  await client.patch(
    Nodes,
    { name: facts.name },
    { type: 'merge', body: { status } },
    { subresource: 'status', signal },
  )
}

/** Marks the node as not ready: nobody looks after its pods any more. */
export async function reportNotReady({ client, facts, clock }: Omit<RegistrationOptions, 'signal'>): Promise<void> {
  const { status } = nodeObject(facts, clock.now())
  const conditions = status.conditions?.map((condition) =>
    condition.type === 'Ready'
      ? { ...condition, status: 'False', reason: 'NodeShutdown', message: 'the node agent has stopped' }
      : condition,
  )
  const body = { status: { conditions } }
  await client.patch(Nodes, { name: facts.name }, { type: 'merge', body }, { subresource: 'status', timeoutMs: 2_000 })
}

/** Renews the node's lease until `signal` aborts. A failed renewal is tried again at the next beat. */
export async function keepLease(options: RegistrationOptions): Promise<void> {
  const { log, signal } = options
  while (!signal.aborted) {
    try {
      await renewLease(options)
    } catch (error) {
      if (!signal.aborted) log.warn('node lease not renewed', { error })
    }
    await sleep(heartbeatMs, undefined, { signal }).catch(() => {}) // aborted: the loop ends by its condition
  }
}

async function renewLease({ client, facts, clock, signal }: RegistrationOptions): Promise<void> {
  const ref = { namespace: leaseNamespace, name: facts.name }
  const renewTime = clock.now().toISOString().replace(/Z$/, '000Z')
  try {
    await client.patch(Leases, ref, { type: 'merge', body: { spec: { renewTime } } }, { signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
    const spec = { holderIdentity: facts.name, leaseDurationSeconds, renewTime }
    await client.create(Leases, { metadata: ref, spec }, { signal })
  }
}
