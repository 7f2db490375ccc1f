import { type ClusterAccess, type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { type SandboxTemplate, SandboxTemplates, type SandboxWarmPool, SandboxWarmPools } from '@corral/resources'
import { ClaimCollection } from './claim-collection.js'
import { type ClusterHealth, checkHealth } from './health-check.js'
import { type ClusterScope, ResourceCollection } from './resource-collection.js'
import { SandboxCollection, type SandboxRef } from './sandbox-collection.js'
import type { SandboxConnection } from './sandbox-connection.js'
import { translated } from './sandbox-error.js'

/** How to reach the cluster. Without any of it: `KUBECONFIG`, `~/.kube/config`, or the pod's ServiceAccount. */
export interface AgentSandboxClientOptions {
  /** A loaded configuration. */
  kubeConfig?: ClusterAccess
  kubeconfigPath?: string
  context?: string
  /** A client of the caller's, who also closes it. */
  client?: KubeClient
  /** Instead of the context's namespace. */
  namespace?: string
}

/** The Agent Sandbox API of one cluster. Makes no connection before the first call. */
export class AgentSandboxClient implements AsyncDisposable {
  readonly sandboxes: SandboxCollection
  readonly claims: ClaimCollection
  readonly templates: ResourceCollection<SandboxTemplate>
  readonly warmPools: ResourceCollection<SandboxWarmPool>
  readonly #options: AgentSandboxClientOptions
  #client: Promise<KubeClient> | undefined

  constructor(options: AgentSandboxClientOptions = {}) {
    this.#options = options
    const scope: ClusterScope = {
      kube: () => this.#kube(),
      namespace: async () => options.namespace ?? (await this.#kube()).defaultNamespace,
    }
    this.sandboxes = new SandboxCollection(scope)
    this.claims = new ClaimCollection(scope)
    this.templates = new ResourceCollection<SandboxTemplate>(SandboxTemplates, scope)
    this.warmPools = new ResourceCollection<SandboxWarmPool>(SandboxWarmPools, scope)
  }

  /** A line to the daemon of a sandbox, which the caller closes. */
  connect(sandbox: SandboxRef, options: { signal?: AbortSignal } = {}): Promise<SandboxConnection> {
    return this.sandboxes.connect(sandbox, options)
  }

  /** What of the API is there. Rejects only when there is no usable configuration. */
  async healthCheck(options: { signal?: AbortSignal } = {}): Promise<ClusterHealth> {
    const kube = await translated(() => this.#kube(), options.signal)
    return checkHealth(kube, this.#options.namespace ?? kube.defaultNamespace, options)
  }

  /** Closes the connections this client opened; a client that was handed in stays open. */
  async close(): Promise<void> {
    if (this.#options.client || !this.#client) return
    // A configuration that never loaded has nothing to close.
    const client = await this.#client.catch(() => undefined)
    await client?.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #kube(): Promise<KubeClient> {
    this.#client ??= this.#open()
    return this.#client
  }

  async #open(): Promise<KubeClient> {
    const { client, kubeConfig, kubeconfigPath, context } = this.#options
    if (client) return client
    const access =
      kubeConfig ??
      (await loadKubeConfig({
        ...(kubeconfigPath === undefined ? {} : { path: kubeconfigPath }),
        ...(context === undefined ? {} : { context }),
      }))
    return kubeClientFromConfig(access)
  }
}
