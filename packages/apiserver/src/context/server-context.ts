import type { Clock, Logger, PodStreams } from '@corral/ports'
import type { TokenAuthority } from '../auth/token-authority.js'
import type { ClusterIpRange } from '../registry/cluster-ip-range.js'
import type { KindRegistry } from '../registry/kind-registry.js'
import type { ObjectStore } from '../store/object-store.js'

/** What the verbs share. Made once per server. */
export interface ServerContext {
  readonly store: ObjectStore
  readonly registry: KindRegistry
  readonly clock: Clock
  readonly log: Logger
  readonly clusterIps: ClusterIpRange
  readonly tokens: TokenAuthority
  /** The handler of pod streams, once a node has registered one. */
  podStreams(): PodStreams | undefined
}
