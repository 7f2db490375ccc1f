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
export { type ImageContents, programFiles } from './container-image.js'
export { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.js'
export { nodeObstacles } from './node-packages.js'
export { OracleError, type OracleErrorCode } from './oracle-error.js'
export { freePorts } from './program.js'
export { type RealNode, startRealNode } from './real-node.js'
export {
  installUpstreamCrds,
  startUpstreamController,
  type UpstreamController,
  type UpstreamControllerOptions,
  upstreamDirectory,
} from './upstream-controller.js'
