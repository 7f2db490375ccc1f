import { defaultLabelDomains } from '../sandbox-claim/index.js'
import { defaultRelease, type UpstreamRelease, upstreamRelease } from '../shared/upstream-release.js'
import { type Flag, type FlagValue, readFlags } from './go-flags.js'
import type { EndpointOptions, ManagerOptions, MetricsTls } from './options.js'
import { parseTlsFlags } from './tls-flags.js'

const flag = (name: string, kind: Flag['kind'], value: FlagValue, help: string): Flag => ({
  name,
  kind,
  default: value,
  help,
})

/** Every flag of the manager, with upstream's names and defaults. */
export const managerFlags: readonly Flag[] = [
  flag('version', 'bool', false, 'print the version and exit'),
  flag('kubeconfig', 'string', '', 'kubeconfig to use outside a cluster'),
  flag('cluster-domain', 'string', 'cluster.local', 'suffix of Service names in the cluster'),
  flag('metrics-bind-address', 'string', ':8080', 'address of /metrics; 0 for none'),
  flag('health-probe-bind-address', 'string', ':8081', 'address of /healthz and /readyz; 0 for none'),
  flag('leader-elect', 'bool', true, 'let only one manager of several act'),
  flag('leader-election-namespace', 'string', '', 'namespace of the election lease; the own one in a cluster'),
  flag('extensions', 'bool', false, 'run the claim, template and pool controllers'),
  flag('enable-tracing', 'bool', false, 'export OpenTelemetry traces over OTLP'),
  flag('enable-pprof', 'bool', false, 'serve a CPU profile at /debug/pprof/profile'),
  flag('enable-pprof-debug', 'bool', false, 'serve every profile there is; implies --enable-pprof'),
  flag('pprof-block-profile-rate', 'int', 1_000_000, 'accepted for compatibility; there is no block profile here'),
  flag('pprof-mutex-profile-fraction', 'int', 10, 'accepted for compatibility; there is no mutex profile here'),
  flag('kube-api-qps', 'float', -1, 'requests per second to the API server; -1 for no limit'),
  flag('kube-api-burst', 'int', 10, 'requests above the limit that may come at once'),
  flag('api-connections', 'int', 1, 'HTTP/2 connections for everything but watches'),
  flag('separate-watch-connection', 'bool', false, 'give watches a connection of their own'),
  flag('sandbox-concurrent-workers', 'int', 100, 'Sandboxes reconciled at once'),
  flag('sandbox-claim-concurrent-workers', 'int', 50, 'SandboxClaims reconciled at once'),
  flag('sandbox-warm-pool-concurrent-workers', 'int', 1, 'SandboxWarmPools reconciled at once'),
  flag('sandbox-template-concurrent-workers', 'int', 1, 'SandboxTemplates reconciled at once'),
  flag('sandbox-warm-pool-max-batch-size', 'int', 300, 'members a pool creates or deletes in one pass'),
  flag('sandbox-warm-pool-replenish-delay', 'duration', 0, 'pause before members that left are replaced'),
  flag('sandbox-warm-pool-max-refill-rate', 'float', 0, 'members per second and pool; 0 for no limit'),
  flag('sandbox-write-behind-window', 'duration', 0, 'time for which Pod metadata writes may wait; 0 for none'),
  flag(
    'sandbox-warm-pool-readiness-grace-period',
    'duration',
    5 * 60_000,
    'age at which a member that is not Ready is replaced',
  ),
  flag(
    'sandbox-warm-pool-unschedulable-recheck-interval',
    'duration',
    60_000,
    'pause between looks at members no node fits',
  ),
  flag('enable-warm-pool-eviction', 'bool', true, "let autoscalers evict a pool's idle Pods"),
  flag('cache-label-selectors', 'bool', false, 'watch only Pods and Services that carry the sandbox label'),
  flag('disable-claim-events', 'bool', false, 'emit no events on claims'),
  flag('disable-claim-observability-annotations', 'bool', false, 'do not record on a claim when it was first seen'),
  flag('metrics-secure-serving', 'bool', false, 'serve /metrics over TLS'),
  flag('metrics-cert-dir', 'string', '', 'directory with tls.crt and tls.key; one is made at start without it'),
  flag('tls-min-version', 'string', '', 'VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13'),
  flag('tls-cipher-suites', 'string', '', 'comma-separated cipher suites, by their IANA names'),
  flag('zap-devel', 'bool', false, 'logs for people instead of machines'),
  flag('zap-encoder', 'string', '', "log format: 'json' or 'console'"),
  flag('zap-log-level', 'string', '', "log level: 'debug', 'info', 'error', 'panic' or a number"),
  flag('zap-stacktrace-level', 'string', '', "level from which traces are logged: 'info', 'error', 'panic'"),
  flag('zap-time-encoding', 'string', '', "'epoch', 'millis', 'nano', 'iso8601', 'rfc3339' or 'rfc3339nano'"),
  flag('upstream-release', 'string', defaultRelease, 'behave as this release of upstream, 1.0.3 to 1.0.11'),
  flag('disable-sandbox-events', 'bool', false, 'emit no events on Sandboxes where the release has them'),
  flag('explain-not-ready', 'bool', false, 'let Ready=False say why the Pod is not up'),
]

/** What the command line asks for, besides the options of the manager itself. */
export interface ManagerCommand {
  showVersion: boolean
  kubeconfig?: string
  leaderElect: boolean
  leaderElectionNamespace?: string
  client: {
    rateLimit?: { perSecond: number; burst: number }
    connections: number
    separateWatchConnection: boolean
  }
  logging: { development: boolean; encoder?: string; level?: string; stacktraceLevel?: string; timeEncoding?: string }
  options: ManagerOptions & { endpoints: EndpointOptions }
  /** Settings that work but deserve a word. */
  warnings: string[]
}

export type ParsedManagerOptions = { command: ManagerCommand } | { error: string }

/** Reads the manager's command line. Pure: the first thing wrong with it comes back as text. */
export function parseManagerOptions(argv: readonly string[]): ParsedManagerOptions {
  const read = readFlags(managerFlags, argv)
  if ('error' in read) return read
  const { values } = read
  const text = (name: string): string => String(values.get(name))
  const number = (name: string): number => Number(values.get(name))
  const on = (name: string): boolean => values.get(name) === true
  const problem = on('version') ? undefined : firstProblem(number)
  if (problem) return { error: problem }
  const tls = parseTlsFlags({
    secure: on('metrics-secure-serving'),
    certDir: text('metrics-cert-dir'),
    minVersion: text('tls-min-version'),
    cipherSuites: text('tls-cipher-suites'),
  })
  if ('error' in tls) return tls
  const release = upstreamRelease(text('upstream-release'))
  if (!release)
    return { error: `upstream-release must be 1.0.3 to 1.0.11, not ${JSON.stringify(text('upstream-release'))}` }
  const command: ManagerCommand = {
    showVersion: on('version'),
    ...(text('kubeconfig') && { kubeconfig: text('kubeconfig') }),
    leaderElect: on('leader-elect'),
    ...(text('leader-election-namespace') && { leaderElectionNamespace: text('leader-election-namespace') }),
    client: {
      ...(number('kube-api-qps') > 0 && {
        rateLimit: { perSecond: number('kube-api-qps'), burst: number('kube-api-burst') },
      }),
      connections: number('api-connections'),
      separateWatchConnection: on('separate-watch-connection'),
    },
    logging: {
      development: on('zap-devel'),
      ...(text('zap-encoder') && { encoder: text('zap-encoder') }),
      ...(text('zap-log-level') && { level: text('zap-log-level') }),
      ...(text('zap-stacktrace-level') && { stacktraceLevel: text('zap-stacktrace-level') }),
      ...(text('zap-time-encoding') && { timeEncoding: text('zap-time-encoding') }),
    },
    options: managerOptions(text, number, on, { tls: tls.tls, release }),
    warnings: warnings(number),
  }
  return { command }
}

function managerOptions(
  text: (name: string) => string,
  number: (name: string) => number,
  on: (name: string) => boolean,
  { tls, release }: { tls: MetricsTls | undefined; release: UpstreamRelease },
): ManagerCommand['options'] {
  return {
    extensions: on('extensions'),
    workers: {
      sandbox: number('sandbox-concurrent-workers'),
      claim: number('sandbox-claim-concurrent-workers'),
      pool: number('sandbox-warm-pool-concurrent-workers'),
      template: Math.max(1, number('sandbox-template-concurrent-workers')),
    },
    sandbox: {
      clusterDomain: text('cluster-domain'),
      writeBehindWindowMs: number('sandbox-write-behind-window'),
      explainNotReady: on('explain-not-ready'),
      upstreamRelease: { ...release, sandboxEvents: release.sandboxEvents && !on('disable-sandbox-events') },
    },
    claim: {
      labelDomains: defaultLabelDomains,
      disableObservabilityAnnotations: on('disable-claim-observability-annotations'),
      disableEvents: on('disable-claim-events'),
    },
    pool: {
      maxBatchSize: number('sandbox-warm-pool-max-batch-size'),
      replenishDelayMs: number('sandbox-warm-pool-replenish-delay'),
      maxRefillPerSecond: number('sandbox-warm-pool-max-refill-rate'),
      readinessGraceMs: number('sandbox-warm-pool-readiness-grace-period'),
      unschedulableRecheckMs: number('sandbox-warm-pool-unschedulable-recheck-interval'),
      markEvictable: on('enable-warm-pool-eviction'),
      upstreamRelease: release,
    },
    lowPriorityConcurrency: 32,
    cacheLabelSelectors: on('cache-label-selectors'),
    tracing: on('enable-tracing'),
    endpoints: {
      metricsAddress: text('metrics-bind-address'),
      healthAddress: text('health-probe-bind-address'),
      ...(tls && { metricsTls: tls }),
      pprof: on('enable-pprof') || on('enable-pprof-debug'),
      pprofDebug: on('enable-pprof-debug'),
    },
  }
}

function firstProblem(number: (name: string) => number): string | undefined {
  const refill = number('sandbox-warm-pool-max-refill-rate')
  const workers = ['sandbox', 'sandbox-claim', 'sandbox-warm-pool'].map((name) => number(`${name}-concurrent-workers`))
  const checks: [boolean, string][] = [
    [
      number('sandbox-warm-pool-readiness-grace-period') > 0,
      '--sandbox-warm-pool-readiness-grace-period must be a positive duration',
    ],
    [
      number('sandbox-warm-pool-unschedulable-recheck-interval') > 0,
      '--sandbox-warm-pool-unschedulable-recheck-interval must be a positive duration',
    ],
    [workers.every((count) => count > 0), 'concurrent workers must be greater than 0'],
    [number('sandbox-warm-pool-max-batch-size') > 0, 'sandbox-warm-pool-max-batch-size must be greater than 0'],
    [
      Number.isFinite(refill) && refill >= 0,
      'sandbox-warm-pool-max-refill-rate must be a finite value >= 0 (0 disables pacing)',
    ],
    [
      number('sandbox-write-behind-window') >= 0,
      'sandbox-write-behind-window must be >= 0 (0 disables write-behind coalescing)',
    ],
    [number('kube-api-burst') > 0, 'kube-api-burst must be greater than 0'],
    [number('api-connections') >= 1, 'api-connections must be greater than or equal to 1'],
  ]
  return checks.find(([holds]) => !holds)?.[1]
}

function warnings(number: (name: string) => number): string[] {
  const names = ['sandbox', 'sandbox-claim', 'sandbox-warm-pool', 'sandbox-template']
  const total = names.reduce((sum, name) => sum + number(`${name}-concurrent-workers`), 0)
  const found: string[] = []
  if (total > 1000) found.push(`${total} concurrent workers in total may exhaust the machine`)
  if (number('kube-api-qps') > 0 && total > number('kube-api-burst')) {
    found.push(`${total} concurrent workers share an API burst of ${number('kube-api-burst')} and may be throttled`)
  }
  return found
}
