import { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import { type FindOptions, findPlatform } from './find-platform.js'

export interface KubeOptions extends FindOptions {
  kubeconfig?: string | undefined
  context?: string | undefined
  namespace?: string | undefined
}

/** The cluster to talk to: a kubeconfig that is named, else the running platform's, else what kubectl would use. */
export async function sandboxClient(options: KubeOptions): Promise<AgentSandboxClient> {
  const platform = options.kubeconfig ? undefined : await findPlatform({ dataDir: options.dataDir })
  const kubeconfigPath = options.kubeconfig ?? platform?.kubeconfig
  return new AgentSandboxClient({
    ...(kubeconfigPath ? { kubeconfigPath } : {}),
    ...(options.context ? { context: options.context } : {}),
    ...(options.namespace ? { namespace: options.namespace } : {}),
  })
}
