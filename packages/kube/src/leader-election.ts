import { type Clock, type Logger, silentLogger, systemClock } from '@corral/ports'
import { defineKind, errorCode, type KubeObject, type Stored } from '@corral/resources'
import { sleep } from './backoff.js'
import type { KubeClient } from './kube-client.js'

interface LeaseSpec {
  holderIdentity?: string
  leaseDurationSeconds?: number
  acquireTime?: string
  renewTime?: string
  leaseTransitions?: number
}
export interface LeaseObject extends KubeObject {
  spec?: LeaseSpec
}
const leases = defineKind<LeaseObject>('coordination.k8s.io/v1', 'Lease', 'leases')

export interface LeaderElectionOptions {
  client: Pick<KubeClient, 'find' | 'create' | 'update'>
  namespace: string
  name: string
  /** Unique per process. */
  identity: string
  /** How long others wait for a silent leader. */
  leaseMs?: number
  /** A leader that could not renew for this long gives up by itself, before others may take over. */
  renewMs?: number
  retryMs?: number
  /** Runs while we lead; its signal aborts when we no longer do. Returning gives the lease up. */
  onStarted: (signal: AbortSignal) => Promise<void>
  onLost?: () => void
  /** The first attempt did not get the lease: another process leads, or the server is away. */
  onStandby?: () => void
  /** Empties the lease on the way out, so that the next leader need not wait. Default true. */
  releaseOnCancel?: boolean
  signal: AbortSignal
  clock?: Clock
  log?: Logger
}

/** What we saw of the lease, and when by our own clock: other clocks are never compared with ours. */
export interface LeaseObservation {
  readonly lease: Stored<LeaseObject> | undefined
  readonly seenAtMs: number
}

export type LeaseMove =
  | { readonly type: 'wait' }
  | { readonly type: 'create' | 'update'; readonly spec: Required<LeaseSpec> }

/** Whether to take, renew or leave the lease. Pure: `nowMs` is monotonic, `now` goes onto the wire. */
export function planLease(
  { lease, seenAtMs }: LeaseObservation,
  { identity, leaseMs }: { identity: string; leaseMs: number },
  nowMs: number,
  now: Date,
): LeaseMove {
  const time = microTime(now)
  const fresh = { holderIdentity: identity, leaseDurationSeconds: Math.ceil(leaseMs / 1000), renewTime: time }
  if (!lease) return { type: 'create', spec: { ...fresh, acquireTime: time, leaseTransitions: 0 } }
  const { holderIdentity = '', acquireTime = time, leaseTransitions = 0, leaseDurationSeconds } = lease.spec ?? {}
  if (holderIdentity === identity) return { type: 'update', spec: { ...fresh, acquireTime, leaseTransitions } }
  // The holder's own promise counts, not ours.
  const heldMs = leaseDurationSeconds === undefined ? leaseMs : leaseDurationSeconds * 1000
  if (holderIdentity !== '' && nowMs < seenAtMs + heldMs) return { type: 'wait' }
  return { type: 'update', spec: { ...fresh, acquireTime: time, leaseTransitions: leaseTransitions + 1 } }
}

/**
 * Waits for the lease, leads, and settles when `signal` aborted or leadership was lost. `onStarted` has returned by
 * then. Rejects only with what `onStarted` threw.
 */
export async function runLeaderElection(options: LeaderElectionOptions): Promise<void> {
  const { leaseMs = 15_000, renewMs = 10_000, retryMs = 2_000, releaseOnCancel = true, signal } = options
  const { clock = systemClock, log = silentLogger, identity, name } = options
  let observed: LeaseObservation | undefined

  /** One attempt. True when we hold the lease afterwards. */
  async function attempt(): Promise<boolean> {
    const { client, namespace } = options
    const timeoutMs = renewMs
    const lease = await client.find(leases, { namespace, name }, { timeoutMs })
    const isSame = observed?.lease && observed.lease.metadata.resourceVersion === lease?.metadata.resourceVersion
    if (!observed || !isSame) observed = { lease, seenAtMs: performance.now() }
    const move = planLease(observed, { identity, leaseMs }, performance.now(), clock.now())
    if (move.type === 'wait') return false
    const metadata = lease ? lease.metadata : { name, namespace }
    const object = { apiVersion: leases.apiVersion, kind: leases.kind, metadata, spec: move.spec }
    const write = move.type === 'create' ? client.create : client.update
    const stored = await write(leases, object, { timeoutMs })
    observed = { lease: stored, seenAtMs: performance.now() }
    return true
  }

  async function tryOnce(): Promise<boolean> {
    try {
      return await attempt()
    } catch (error) {
      // Another process was quicker, or the server is away: both mean not now.
      const isRace = errorCode(error) === 'Conflict' || errorCode(error) === 'AlreadyExists'
      log[isRace ? 'debug' : 'warn']('lease not written', { lease: name, error })
      return false
    }
  }

  /** Renews until `until` aborts (false) or the deadline passes without success (true: lost). */
  async function renew(until: AbortSignal): Promise<boolean> {
    let renewedAtMs = performance.now()
    while (await sleep(retryMs, until)) {
      if (await tryOnce()) renewedAtMs = performance.now()
      else if (observed?.lease?.spec?.holderIdentity !== identity) return true
      else if (performance.now() - renewedAtMs > renewMs) return true
    }
    return false
  }

  /** Empties the lease. Takes as long as a renewal may: without it the next leader waits until the lease runs out. */
  async function release(): Promise<void> {
    if (!releaseOnCancel || observed?.lease?.spec?.holderIdentity !== identity) return
    try {
      await empty(observed.lease)
    } catch (error) {
      if (errorCode(error) !== 'Conflict') return log.debug('lease not released', { lease: name, error })
      // A renewal whose answer was lost has moved the lease on.
      await options.client
        .find(leases, { namespace: options.namespace, name }, { timeoutMs: renewMs })
        .then((lease) => (lease?.spec?.holderIdentity === identity ? empty(lease) : undefined))
        .catch((cause: unknown) => log.debug('lease not released', { lease: name, error: cause }))
    }
  }

  async function empty(held: Stored<LeaseObject>): Promise<void> {
    const spec = { ...held.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(clock.now()) }
    await options.client.update(leases, { ...held, spec }, { timeoutMs: renewMs })
  }

  for (let attempts = 0; !signal.aborted && !(await tryOnce()); attempts++) {
    if (attempts === 0) options.onStandby?.()
    await sleep(retryMs * (1 + Math.random() * 0.2), signal)
  }
  if (signal.aborted) return release()

  log.info('leading', { lease: name, identity })
  const leading = new AbortController()
  const stop = () => leading.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const renewing = renew(leading.signal).then((isLost) => {
    if (!isLost) return
    log.warn('leadership lost', { lease: name, identity })
    leading.abort(new Error('leadership lost'))
    options.onLost?.()
  })
  try {
    await options.onStarted(leading.signal)
  } finally {
    signal.removeEventListener('abort', stop)
    leading.abort()
    await renewing
    await release()
  }
}

/** RFC 3339 with microseconds, as Leases want it. */
export function microTime(time: Date): string {
  return time.toISOString().replace('Z', '000Z')
}
