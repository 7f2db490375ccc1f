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

const retryMs = 1_000
const defaultClass = 'storageclass.kubernetes.io/is-default-class'

/** Binds every claim of class `local` to a directory of this node, and removes the directory with the claim. */
export function startProvisioner({ client, claims, nodeName, log, signal }: ProvisionerOptions): Provisioner {
  let isDefault = true
  const informer = createInformer({ client, kind: PersistentVolumeClaims, log, signal })
  const timers = new Set<NodeJS.Timeout>()
  const planFor = (claim: Stored<PersistentVolumeClaim>): ClaimAction[] =>
    planClaim(claim, false, { nodeName, path: claims.path(claim.metadata.uid), isDefault })
  let queue: Promise<void> = ensureStorageClass(client, signal).then(
    (isOurs) => {
      isDefault = isOurs
    },
    (error: unknown) => {
      if (!signal.aborted) log.warn('storage class not made', { error })
    },
  )

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
    if (planFor(claim).length > 0) enqueue(claim, () => bind(claim).catch(ignore(isNotFound)))
  }
  informer.subscribe({
    add: serve,
    update: (claim) => serve(claim),
    delete(claim) {
      if (isLocalClaim(claim, isDefault)) enqueue(claim, () => remove(claim))
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
