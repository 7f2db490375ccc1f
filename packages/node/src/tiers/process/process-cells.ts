import type { CellStrategy } from '../../cradle/server/cell-strategy.js'
import { withHostPaths } from './process-paths.js'

/** Cells without a boundary: the supervisor runs on the host, in the pod's control group and with the pod's uid. */
export function processCells(): CellStrategy {
  return {
    hasOwnNetwork: false,
    hasMounts: false,
    checkPod() {},
    planInside: (plan, pod, directories) => withHostPaths(plan, pod, directories),
    nativeRecords: (_input, { path }) => [`e${path}`],
    nodeCommand: (_input, { nodePath, script }) => ({ argv: [nodePath, script], files: [] }),
  }
}
