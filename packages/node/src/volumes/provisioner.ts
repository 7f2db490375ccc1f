import { createInformer, type KubeClient } from '@corral/kube'
import {
  isAlreadyExists,
  isNotFound,
  type Logger,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  StorageClasses,
  type Stored,
} from '@corral/resources'
import type { ClaimDirectories } from './claim-directories.js'
import { isLocalClaim, localStorageClass, planClaim, provisionerName, volumeNameOf } from './claim-plan.js'

export interface ProvisionerOptions {
  client: KubeClient
  claims: ClaimDirectories
  log: Logger
  signal: AbortSignal
}

export interface Provisioner {
  /** Settles when all claims have been seen once. */
  readonly ready: Promise<void>
  /** The claims a pod of this namespace names, as far as they are known. */
  find(namespace: string, name: string): Stored<PersistentVolumeClaim> | undefined
  /** Settles after the last claim in hand. */
  stop(): Promise<void>
}

const retryMs = 1_000

/** Binds every claim of class `local` to a directory of this node, and removes the directory with the claim. */
export function startProvisioner({ client, claims, log, signal }: ProvisionerOptions): Provisioner {
  const informer = createInformer({ client, kind: PersistentVolumeClaims, log, signal })
  const timers = new Set<NodeJS.Timeout>()
  let queue: Promise<void> = ensureStorageClass(client, signal).catch((error: unknown) => {
    if (!signal.aborted) log.warn('storage class not made', { error })
  })

  function enqueue(claim: Stored<PersistentVolumeClaim>, work: () => Promise<void>): void {
    queue = queue.then(work).catch((error: unknown) => {
      if (signal.aborted) return
      log.warn('claim not served', { claim: claim.metadata.name, error })
      const timer = setTimeout(() => {
        timers.delete(timer)
        enqueue(claim, work)
      }, retryMs)
      timers.add(timer)
    })
  }

  async function bind(claim: Stored<PersistentVolumeClaim>): Promise<void> {
    for (const action of planClaim(claim, false, claims.path(claim.metadata.uid))) {
      if (action.kind === 'createVolume') {
        await client.create(PersistentVolumes, action.volume, { signal }).catch(ignore(isAlreadyExists))
        const body = { status: { phase: 'Bound' } }
        const name = action.volume.metadata?.name ?? ''
        await client.patch(PersistentVolumes, { name }, { type: 'merge', body }, { subresource: 'status', signal })
        continue
      }
      const ref = { namespace: claim.metadata.namespace ?? '', name: claim.metadata.name }
      const { uid } = claim.metadata
      const spec = { metadata: { uid }, spec: { volumeName: action.volumeName, storageClassName: localStorageClass } }
      const status = { phase: 'Bound', accessModes: action.accessModes, capacity: action.capacity }
      await client.patch(PersistentVolumeClaims, ref, { type: 'merge', body: spec }, { signal })
      const patch = { type: 'merge', body: { metadata: { uid }, status } } as const
      await client.patch(PersistentVolumeClaims, ref, patch, { subresource: 'status', signal })
    }
  }

  async function remove(claim: Stored<PersistentVolumeClaim>): Promise<void> {
    await client.delete(PersistentVolumes, { name: volumeNameOf(claim) }).catch(ignore(isNotFound))
    await claims.remove(claim.metadata.uid)
  }

  const serve = (claim: Stored<PersistentVolumeClaim>): void => {
    if (planClaim(claim, false, '').length > 0) enqueue(claim, () => bind(claim).catch(ignore(isNotFound)))
  }
  informer.subscribe({
    add: serve,
    update: (claim) => serve(claim),
    delete(claim) {
      if (isLocalClaim(claim)) enqueue(claim, () => remove(claim))
    },
  })

  return {
    ready: informer.hasSynced,
    find: (namespace, name) => informer.get({ namespace, name }),
    async stop() {
      await informer.stop()
      for (const timer of timers) clearTimeout(timer)
      await queue
    },
  }
}

async function ensureStorageClass(client: KubeClient, signal: AbortSignal): Promise<void> {
  const metadata = { name: localStorageClass, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } }
  const object = { metadata, provisioner: provisionerName, reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' }
  await client.create(StorageClasses, object, { signal }).catch(ignore(isAlreadyExists))
}

/** Swallows what the test names: the thing is already as we want it. */
function ignore(isHarmless: (error: unknown) => boolean): (error: unknown) => undefined {
  return (error) => {
    if (!isHarmless(error)) throw error
    return undefined
  }
}
