import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeClient } from '@corral/kube'
import type { Clock, Logger } from '@corral/ports'
import { isAlreadyExists, isNotFound, Leases, Nodes } from '@corral/resources'
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

/** Marks the node as not ready: its agent has stopped, so its pods are no longer managed. */
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

const pressureTries = 30
const pressureRetryMs = 500

/** Tells in the Node object what is wrong with its disk, if anything is by then; tried again while the API refuses it. */
export async function reportDiskPressure(
  { client, facts, clock, signal }: RegistrationOptions,
  findProblem: () => string | undefined,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    const problem = findProblem()
    const { status } = nodeObject(facts, clock.now())
    const conditions = status.conditions?.map((condition) =>
      condition.type === 'DiskPressure' && problem !== undefined
        ? { ...condition, status: 'True', reason: 'KubeletHasDiskPressure', message: problem }
        : condition,
    )
    const body = { status: { conditions } }
    try {
      await client.patch(Nodes, { name: facts.name }, { type: 'merge', body }, { subresource: 'status', signal })
      return
    } catch (error) {
      if (signal.aborted) return
      if (tries === pressureTries) throw error
      await sleep(pressureRetryMs, undefined, { signal }).catch(() => {}) // aborted: the next try fails for good
    }
  }
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
