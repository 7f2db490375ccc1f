import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'

/** Our own client on the server under test, over the socket. */
export async function remoteClient(kubeconfig: string): Promise<KubeClient> {
  return kubeClientFromConfig(await loadKubeConfig({ path: kubeconfig }))
}
