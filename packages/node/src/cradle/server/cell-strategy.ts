import type { LaunchPlan, PodPlan } from '../../isolation/isolation.js'
import type { SupervisorProgram } from '../protocol/messages.js'

/** Directories every cell gets, wherever its tier puts them. */
export interface CellDirectories {
  /** Files the cradle writes for this cell: resolv.conf, hosts, passwd, group. */
  etcDirectory: string
  homeSource: string
  tmpSource: string
}

export interface LaunchInput extends CellDirectories {
  supervisor: SupervisorProgram
  pod: PodPlan
  plan: LaunchPlan
  cgroupFiles: readonly string[]
  /** Where the kernel counts what it ended of the cell for want of memory. */
  memoryEventsFile?: string | undefined
  /** The pod's namespaces, on a tier that has them. */
  network?: { netFd: number; userFd: number | undefined }
  socketDirectory: string
  socketName: string
  isRoot: boolean
}

/**
 * What a tier decides about its cells. The cradle holds pods, runs and sockets and asks the strategy of its tier for the
 * rest; it never looks at the name of the tier.
 */
export interface CellStrategy {
  /** Pods have a network namespace of their own; without one a pod's address belongs to the host. */
  readonly hasOwnNetwork: boolean
  /** Mounts exist, so the supervisor can check before it starts anything that each is the one that was meant. */
  readonly hasMounts: boolean
  /** Throws `Forbidden` for a pod that this tier could not hold back. */
  checkPod(plan: PodPlan): void
  /** The plan with paths as the processes of the cell see them. */
  planInside(plan: LaunchPlan, pod: PodPlan, directories: CellDirectories): LaunchPlan
  /** Records for the compiled launcher (see `native/launch.c`) from the last step before the boundary to the supervisor. */
  nativeRecords(input: LaunchInput, supervisor: { path: string }): string[]
  /** The same as a command for the Node supervisor. The caller closes `files`, which it inherits from `firstFd` on. */
  nodeCommand(
    input: LaunchInput,
    supervisor: { nodePath: string; script: string },
    firstFd: number,
  ): { argv: string[]; files: number[] }
}
