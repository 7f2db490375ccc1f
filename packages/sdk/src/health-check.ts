import type { KubeClient } from '@corral/kube'
import { Deployments, Leases, Namespaces } from '@corral/resources'

/** What the SDK needs of a cluster, and what of it is there. */
export interface ClusterHealth {
  /** The kinds are served and the namespace exists. */
  readonly healthy: boolean
  readonly crdRegistered: boolean
  readonly namespace: string
  readonly namespaceExists: boolean
  /** A controller was found; false also where we may not look. */
  readonly controllerInstalled: boolean
  readonly controllerVersion?: string
  readonly clusterVersion?: string
  /** Why the cluster could not be asked at all. */
  readonly error?: string
}

const leaseName = 'a3317529.agent-sandbox.x-k8s.io'
const controllerLabel = 'app=agent-sandbox-controller'

/** Looks at the cluster. Never rejects: a cluster that does not answer is unhealthy, with the reason. */
export async function checkHealth(
  kube: KubeClient,
  namespace: string,
  options: { signal?: AbortSignal } = {},
): Promise<ClusterHealth> {
  try {
    const version = await kube.raw('/version', options)
    const [crdRegistered, namespaceExists, controller] = await Promise.all([
      servesKinds(kube, options),
      kube.find(Namespaces, { name: namespace }, options).then((found) => found !== undefined),
      findController(kube, options),
    ])
    const clusterVersion = (version.body as { gitVersion?: string } | undefined)?.gitVersion
    return {
      healthy: crdRegistered && namespaceExists,
      crdRegistered,
      namespace,
      namespaceExists,
      ...controller,
      ...(clusterVersion === undefined ? {} : { clusterVersion }),
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const missing = { healthy: false, crdRegistered: false, namespaceExists: false, controllerInstalled: false }
    return { ...missing, namespace, error: reason }
  }
}

async function servesKinds(kube: KubeClient, options: { signal?: AbortSignal }): Promise<boolean> {
  const paths = ['/apis/agents.x-k8s.io/v1beta1', '/apis/extensions.agents.x-k8s.io/v1beta1']
  const answers = await Promise.all(paths.map((path) => answerStatus(kube, path, options)))
  return answers.every((status) => status === 200)
}

async function answerStatus(kube: KubeClient, path: string, options: { signal?: AbortSignal }): Promise<number> {
  try {
    return (await kube.raw(path, options)).status
  } catch (error) {
    if (error instanceof Error && 'status' in error && typeof error.status === 'number') return error.status
    throw error
  }
}

/** A Deployment tells the version; its Lease tells that some controller runs, wherever that is. */
async function findController(
  kube: KubeClient,
  options: { signal?: AbortSignal },
): Promise<{ controllerInstalled: boolean; controllerVersion?: string }> {
  try {
    const deployments = await kube.list(Deployments, { ...options, labelSelector: controllerLabel })
    const image = deployments.items[0]?.spec?.template?.spec?.containers?.[0]?.image
    if (deployments.items.length > 0) {
      const version = image?.includes(':') ? image.slice(image.lastIndexOf(':') + 1) : undefined
      return { controllerInstalled: true, ...(version === undefined ? {} : { controllerVersion: version }) }
    }
    const leases = await kube.list(Leases, { ...options, fieldSelector: `metadata.name=${leaseName}` })
    return { controllerInstalled: leases.items.length > 0 }
  } catch {
    // Not allowed to look, or a server without these kinds: nothing can be said of it.
    return { controllerInstalled: false }
  }
}
