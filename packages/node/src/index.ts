export { socketPath } from './cradle/client/socket-path.js'
export { mayReach } from './cradle/network/reachable-address.js'
export { type AreaUsage, areaText, areaUsage } from './disk/area-usage.js'
export { makeRoom, type RoomMade, thawPods } from './disk/make-room.js'
export { graceAnnotation } from './disk/storage-limits.js'
export { ImageDirectory, type ImportedImage } from './images/image-directory.js'
export type * from './isolation/isolation.js'
export { IsolationError, type IsolationErrorCode } from './isolation/isolation-error.js'
export { type KubeletServer, type KubeletServerOptions, startKubeletServer } from './kubelet/kubelet-server.js'
export { type Authorize, type Caller, subjectAccess } from './kubelet/subject-access.js'
export { type HostToolchainOptions, hostToolchain } from './launch/host-toolchain.js'
export { type ImageEntry, type ImageMap, imageRepository } from './launch/image-map.js'
export { homeDirectory, type Toolchain } from './launch/launch-plan.js'
export { type NodeAgent, type NodeOptions, startNode } from './node-agent.js'
export { bubblewrapIsolation } from './tiers/bubblewrap/bubblewrap-isolation.js'
export type { IsolationOptions } from './tiers/isolation-options.js'
export {
  isSandboxTier,
  type PickedIsolation,
  type PickOptions,
  pickIsolation,
  tierNames,
} from './tiers/pick-isolation.js'
export { processIsolation } from './tiers/process/process-isolation.js'
