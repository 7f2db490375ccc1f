export { handleUpgrade, isStreamUpgrade } from './handle-upgrade.js'
export { forwardedPorts, processStreams, queryFlag } from './query-flags.js'
export { refuseUpgrade, refuseWith } from './refuse.js'
export type { PortUpgrade, ProcessStreams, ProcessUpgrade, StreamLimits, StreamUpgrade } from './stream-upgrade.js'
