export type { Flag as ManagerFlag } from './go-flags.js'
export { labelDomainsFile, readLabelDomains } from './label-domains.js'
export { type Manager, type ManagerPorts, startManager } from './manager.js'
export {
  type ManagerCommand,
  managerFlags,
  type ParsedManagerOptions,
  parseManagerOptions,
} from './manager-flags.js'
export { defaultManagerOptions, type EndpointOptions, type ManagerOptions, type MetricsTls } from './manager-options.js'
export { type BuildInfo, buildInfoGauge } from './metrics.js'
export { startOtelTracer } from './otel-tracer.js'
export { processMetrics } from './process-metrics.js'
export { restClientMetrics } from './rest-client-metrics.js'
export { type ShadowPoolPorts, startShadowPools } from './shadow-pools.js'
export type { Span, SpanAttributes, Tracer } from './tracing.js'
