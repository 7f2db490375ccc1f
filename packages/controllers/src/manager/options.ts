import type { SandboxOptions } from '../sandbox/index.js'
import type { ClaimOptions } from '../sandbox-claim/index.js'
import type { PoolOptions } from '../sandbox-warm-pool/index.js'

/** Everything the manager can be told. The flags of `corral controller` fill it; `corral up` builds it directly. */
export interface ManagerOptions {
  /** Run the claim, template and pool controllers too. */
  extensions: boolean
  workers: { sandbox: number; claim: number; pool: number; template: number }
  sandbox: SandboxOptions
  claim: ClaimOptions & { disableEvents: boolean }
  pool: PoolOptions
  /** Low-priority writes that may be under way at once: few, where claims would queue up behind them. */
  lowPriorityConcurrency: number
  /** Watch only Pods and Services that carry the sandbox label. */
  cacheLabelSelectors: boolean
  leaderElection?: { namespace: string; identity: string }
  endpoints?: EndpointOptions
  tracing: boolean
}

export interface EndpointOptions {
  /** `host:port`, `:port`, or `0` for none. */
  metricsAddress: string
  healthAddress: string
  metricsTls?: MetricsTls
  pprof: boolean
  pprofDebug: boolean
}

export interface MetricsTls {
  /** Directory with tls.crt and tls.key; a certificate is made at start without it. */
  certDir?: string
  minVersion?: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'
  cipherSuites?: readonly string[]
}

/** Upstream's defaults with the extensions on; no ports, no election: what runs beside its server in one process. */
export function defaultManagerOptions(): ManagerOptions {
  return {
    extensions: true,
    workers: { sandbox: 100, claim: 50, pool: 1, template: 1 },
    sandbox: { clusterDomain: 'cluster.local', writeBehindWindowMs: 0, explainNotReady: false },
    claim: { labelDomains: ['sandbox.users.io'], disableObservabilityAnnotations: false, disableEvents: false },
    pool: {
      maxBatchSize: 300,
      replenishDelayMs: 0,
      maxRefillPerSecond: 0,
      readinessGraceMs: 5 * 60_000,
      unschedulableRecheckMs: 60_000,
      markEvictable: true,
    },
    lowPriorityConcurrency: 256,
    cacheLabelSelectors: false,
    tracing: false,
  }
}
