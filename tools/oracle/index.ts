export {
  type BinaryName,
  controlPlanePrograms,
  ensureOracle,
  findGo,
  moduleDirectory,
  type OracleBinaries,
  type OracleBinary,
  oracleCache,
} from './binaries.js'
export { type ClusterNetwork, prepareNetwork, startClusterNetwork } from './cluster-network.js'
export { type ImageContents, programFiles } from './container-image.js'
export { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.js'
export { nodeObstacles } from './node-packages.js'
export { OracleError, type OracleErrorCode } from './oracle-error.js'
export { freePorts, type Program, startProgram, untilReady } from './program.js'
export { nodeAddress, type RealNode, startRealNode } from './real-node.js'
export {
  installUpstreamCrds,
  startUpstreamController,
  type UpstreamController,
  type UpstreamControllerOptions,
  upstreamDirectory,
} from './upstream-controller.js'
