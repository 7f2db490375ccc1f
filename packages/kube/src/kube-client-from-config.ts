import { createKubeClient, type KubeClientOptions } from './client.js'
import type { ClusterAccess } from './cluster-access.js'
import { type HttpTransportOptions, httpTransport } from './http-transport.js'
import type { KubeClient } from './kube-client.js'

/** A client over HTTP for what `loadKubeConfig` found. Opens no connection before the first call. */
export function kubeClientFromConfig(
  access: ClusterAccess,
  options: HttpTransportOptions & Omit<KubeClientOptions, 'transport'> = {},
): KubeClient {
  const transport = httpTransport(access, options)
  return createKubeClient({ defaultNamespace: access.namespace, ...options, transport })
}
