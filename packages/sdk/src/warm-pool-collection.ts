import type { WriteOptions } from '@corral/kube'
import { type SandboxWarmPool, SandboxWarmPools } from '@corral/resources'
import { type ClusterScope, type InNamespace, ResourceCollection } from './resource-collection.js'
import { translated } from './sandbox-error.js'

/** Pools of warm sandboxes. */
export class WarmPoolCollection extends ResourceCollection<SandboxWarmPool> {
  readonly #scope: ClusterScope

  constructor(scope: ClusterScope) {
    super(SandboxWarmPools, scope)
    this.#scope = scope
  }

  /** Keeps another number of sandboxes warm, through the scale subresource, as `kubectl scale` does. */
  scale(name: string, replicas: number, options: WriteOptions & InNamespace = {}): Promise<void> {
    return translated(async () => {
      const { namespace, ...call } = options
      const ref = { name, namespace: namespace ?? (await this.#scope.namespace()) }
      await (await this.#scope.kube()).scale(SandboxWarmPools, ref, replicas, call)
    }, options.signal)
  }
}
