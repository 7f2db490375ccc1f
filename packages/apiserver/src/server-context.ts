import type { Clock, Logger, PodStreams } from '@corral/resources'
import type { TokenAuthority } from './auth/token-authority.js'
import type { ClusterIpRange } from './registry/cluster-ip-range.js'
import type { KindRegistry } from './registry/kind-registry.js'
import type { ObjectStore } from './store/object-store.js'

/** What the verbs share. Made once per server. */
export interface ServerContext {
  readonly store: ObjectStore
  readonly registry: KindRegistry
  readonly clock: Clock
  readonly log: Logger
  readonly clusterIps: ClusterIpRange
  readonly tokens: TokenAuthority
  /** Who serves the streams of pods, once somebody does. */
  podStreams(): PodStreams | undefined
}
