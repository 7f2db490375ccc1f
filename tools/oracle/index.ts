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
export { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.js'
export { OracleError, type OracleErrorCode } from './oracle-error.js'
export { freePorts } from './program.js'
export {
  installUpstreamCrds,
  startUpstreamController,
  type UpstreamController,
  type UpstreamControllerOptions,
  upstreamDirectory,
} from './upstream-controller.js'
