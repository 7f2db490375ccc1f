export {
  type ManagerCommand,
  managerFlags,
  type ParsedManagerOptions,
  parseManagerOptions,
} from './manager/flags.js'
export type { Flag as ManagerFlag } from './manager/go-flags.js'
export { labelDomainsFile, readLabelDomains } from './manager/label-domains.js'
export { type Manager, type ManagerPorts, startManager } from './manager/manager.js'
export { defaultManagerOptions, type EndpointOptions, type ManagerOptions, type MetricsTls } from './manager/options.js'
export { startOtelTracer } from './manager/otel-tracer.js'
export { processMetrics } from './manager/process-metrics.js'
export { restClientMetrics } from './manager/rest-client-metrics.js'
export { type ShadowPoolPorts, startShadowPools } from './shadow-pools/shadow-pools.js'
export { type BuildInfo, buildInfoGauge } from './shared/metrics.js'
export type { Span, SpanAttributes, Tracer } from './shared/tracing.js'
