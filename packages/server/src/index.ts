export { type Access, createAccess } from './access.js'
export { type AppOptions, createApp } from './app.js'
export { loginLink } from './browser-session.js'
export { clusterView } from './cluster-view.js'
export {
  createExternalMetricsApp,
  type ExternalMetric,
  type ExternalMetricsOptions,
} from './external-metrics.js'
export { type HttpServer, listen } from './listen.js'
export { type AggregatedListenOptions, listenAggregated } from './listen-aggregated.js'
export type { PlatformService } from './platform-service.js'
export { createProbeApp, type ProbeOptions } from './probe-app.js'
export type { SettingsService } from './settings-service.js'
export { createSocketUpgrades, type SocketUpgrades } from './socket-upgrades.js'
export { streamSocket } from './stream-socket.js'
export { terminalSocket } from './terminal-socket.js'
export { readWebFiles, type WebFiles } from './web-files.js'
