import type { LaunchPlan, PodPlan } from '../isolation/isolation.js'
import { bwrapOptions, type HostLayout, supervisorTarget } from '../isolation/profile.js'
import type { CradleConfig } from './protocol.js'

/** How a cell is started: a program, what it reads on its standard input, and descriptors from number 4 on. */
export interface LaunchCommand {
  program: string
  args: readonly string[]
  env: Record<string, string>
  cwd: string
  description: string
  fds: readonly number[]
}

export interface LaunchInput {
  config: CradleConfig
  pod: PodPlan
  plan: LaunchPlan
  host: HostLayout
  cgroupFiles: readonly string[]
  /** The pod's namespaces, on the bubblewrap tier. */
  network?: { netFd: number; userFd: number | undefined }
  socketDirectory: string
  socketName: string
  etcDirectory: string
  homeSource: string
  tmpSource: string
  seccompPath: string
  isRoot: boolean
}

const controlFd = 3
const firstExtraFd = 4
const openFiles = 65_536

/**
 * The launcher's description of a cell (see `native/launch.c`): cgroups and namespaces first, while we may still enter
 * them, then the pod's uid, then bwrap with the whole profile and the supervisor in it.
 */
export function nativeLaunchCommand(input: LaunchInput): LaunchCommand {
  const { config, pod, isRoot } = input
  if (config.supervisor.kind !== 'native') throw new TypeError('a compiled supervisor is needed here')
  const records = input.cgroupFiles.map((path) => `g${path}`)
  const fds: number[] = []
  if (input.network) {
    const { netFd, userFd } = input.network
    fds.push(netFd)
    if (userFd !== undefined) records.push(`u${firstExtraFd + fds.push(userFd) - 1}`)
    records.push(`n${firstExtraFd}`)
  }
  records.push(`lnofile=${openFiles}`, 'lcore=0')
  // Per uid, so it means something only where every pod has its own.
  if (isRoot && input.cgroupFiles.length === 0 && input.plan.limits.pids)
    records.push(`lnproc=${input.plan.limits.pids}`)
  records.push(`s${input.socketName}`, `c${controlFd}`)
  if (isRoot) records.push(`U${pod.hostUid}`, `G${pod.hostUid}`)
  if (config.tier === 'bubblewrap') {
    const supervisor = { source: config.supervisor.path, target: supervisorTarget }
    const options = bwrapOptions({
      ...input,
      supervisor,
      disableUserns: config.disableUserns,
      asPid1: true,
      unshareNet: false,
    })
    records.push(...options.map((option) => `b${option}`), `f${input.seccompPath}`)
    records.push(`e${config.bwrapPath ?? '/usr/bin/bwrap'}`, `a${supervisorTarget}`)
  } else {
    records.push(`e${config.supervisor.path}`)
  }
  records.push('asupervise', 'a@listen', 'a@control')
  return {
    program: config.supervisor.path,
    args: ['launch'],
    env: {},
    cwd: input.socketDirectory,
    description: records.map((record) => `${record}\0`).join(''),
    fds,
  }
}
