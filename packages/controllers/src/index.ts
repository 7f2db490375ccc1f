export { type Manager, type ManagerPorts, startManager } from './manager.js'
export { defaultManagerOptions, type EndpointOptions, type ManagerOptions, type MetricsTls } from './manager-options.js'
