import { createInformer, type KubeClient } from '@corral/kube'
import type { Logger } from '@corral/ports'
import {
  isAlreadyExists,
  isNotFound,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  StorageClasses,
  type Stored,
} from '@corral/resources'
import { keyedWorker } from '@corral/runtime'
import type { ClaimDirectories } from './claim-directories.js'
import {
  type ClaimAction,
  isLocalClaim,
  localStorageClass,
  planClaim,
  provisionerName,
  volumeNameOf,
} from './claim-plan.js'

export interface ProvisionerOptions {
  client: KubeClient
  claims: ClaimDirectories
  nodeName: string
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

const backoff = { baseMs: 1_000, maxMs: 60_000 }
const defaultClass = 'storageclass.kubernetes.io/is-default-class'

/** Binds every claim of class `local` to a directory of this node, and removes the directory with the claim. */
export function startProvisioner({ client, claims, nodeName, log, signal }: ProvisionerOptions): Provisioner {
  let isDefault = true
  const informer = createInformer({ client, kind: PersistentVolumeClaims, log, signal })
  const planFor = (claim: Stored<PersistentVolumeClaim>): ClaimAction[] =>
    planClaim(claim, false, { nodeName, path: claims.path(claim.metadata.uid), isDefault })
  const classMade = ensureStorageClass(client, signal).then(
    (isOurs) => {
      isDefault = isOurs
    },
    (error: unknown) => {
      if (!signal.aborted) log.warn('storage class not made', { error })
    },
  )

  /** Claims to serve by uid, as they were last seen; those that are gone keep their entry until their directory is. */
  const seen = new Map<string, { claim: Stored<PersistentVolumeClaim>; isGone: boolean }>()
  const worker = keyedWorker({ name: 'local-volumes', workers: 1, backoff, log, work: serveClaim })
  async function serveClaim(uid: string): Promise<void> {
    await classMade
    const found = seen.get(uid)
    if (!found) return
    if (found.isGone) await remove(found.claim)
    else await bind(found.claim).catch(ignore(isNotFound))
    if (seen.get(uid) === found) seen.delete(uid)
  }
  function enqueue(claim: Stored<PersistentVolumeClaim>, isGone: boolean): void {
    seen.set(claim.metadata.uid, { claim, isGone })
    worker.add(claim.metadata.uid)
  }

  async function bind(claim: Stored<PersistentVolumeClaim>): Promise<void> {
    for (const action of planFor(claim)) {
      if (action.kind === 'createVolume') {
        await client.create(PersistentVolumes, action.volume, { signal }).catch(ignore(isAlreadyExists))
        const body = { status: { phase: 'Bound' } }
        const name = action.volume.metadata?.name ?? ''
        await client.patch(PersistentVolumes, { name }, { type: 'merge', body }, { subresource: 'status', signal })
        continue
      }
      const ref = { namespace: claim.metadata.namespace ?? '', name: claim.metadata.name }
      const { uid } = claim.metadata
      const named = claim.spec?.storageClassName === undefined ? { storageClassName: localStorageClass } : {}
      const spec = { metadata: { uid }, spec: { volumeName: action.volumeName, ...named } }
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
    if (planFor(claim).length > 0) enqueue(claim, false)
  }
  informer.subscribe({
    add: serve,
    update: (claim) => serve(claim),
    delete(claim) {
      if (isLocalClaim(claim, isDefault)) enqueue(claim, true)
    },
  })

  return {
    ready: informer.hasSynced,
    find: (namespace, name) => informer.get({ namespace, name }),
    async stop() {
      await informer.stop()
      await worker.close()
      await classMade
    },
  }
}

/** Makes our class, the default one unless the cluster has another; answers whether it is. */
async function ensureStorageClass(client: KubeClient, signal: AbortSignal): Promise<boolean> {
  const { items } = await client.list(StorageClasses, { signal })
  const isDefaultClass = (annotations: Record<string, string> = {}): boolean => annotations[defaultClass] === 'true'
  const isOurs = !items.some(
    ({ metadata }) => metadata.name !== localStorageClass && isDefaultClass(metadata.annotations),
  )
  const annotations = isOurs ? { [defaultClass]: 'true' } : {}
  const metadata = { name: localStorageClass, annotations }
  const object = { metadata, provisioner: provisionerName, reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' }
  await client.create(StorageClasses, object, { signal }).catch(ignore(isAlreadyExists))
  return isOurs
}

/** Swallows what the test names: the thing is already as we want it. */
function ignore(isHarmless: (error: unknown) => boolean): (error: unknown) => undefined {
  return (error) => {
    if (!isHarmless(error)) throw error
    return undefined
  }
}
