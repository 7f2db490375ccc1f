import { CoreV1Api, CustomObjectsApi, KubeConfig } from '@kubernetes/client-node'

export function clientNodeConfig(kubeconfig: string): KubeConfig {
  const config = new KubeConfig()
  config.loadFromFile(kubeconfig)
  return config
}

const agents = { group: 'agents.x-k8s.io', version: 'v1beta1', plural: 'sandboxes' }

/** Its default kind of patch, JSON patch, on a Pod and on a Sandbox. */
export async function clientNodePatches(kubeconfig: string, namespace: string, name: string): Promise<void> {
  const config = clientNodeConfig(kubeconfig)
  const body = [{ op: 'add', path: '/metadata/labels', value: { node: 'yes' } }]
  await config.makeApiClient(CoreV1Api).patchNamespacedPod({ name, namespace, body })
  await config.makeApiClient(CustomObjectsApi).patchNamespacedCustomObject({ ...agents, namespace, name, body })
}
