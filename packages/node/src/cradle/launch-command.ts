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
  const records: string[] = []
  if (input.network) {
    const { netFd, userFd } = input.network
    // By path, not by inheritance: the launcher may have been started before the namespace existed.
    if (userFd !== undefined) records.push(`u/proc/${process.pid}/fd/${userFd}`)
    records.push(`n/proc/${process.pid}/fd/${netFd}`)
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
  records.push('asupervise', 'a@listen', 'a@control', ...mountIdentities(input).map((word) => `a${word}`))
  return {
    ...nativeLauncher(config.supervisor.path, input.cgroupFiles, input.socketDirectory),
    description: records.map((record) => `${record}\0`).join(''),
  }
}

/** What the supervisor looks at before it starts anything, in pairs: `device:inode` and where it must be. */
function mountIdentities({ config, plan }: LaunchInput): string[] {
  if (config.tier !== 'bubblewrap') return []
  return plan.mounts.flatMap(({ identity, target }) => (identity === undefined ? [] : [identity, target]))
}

/** A launcher that has joined its groups and waits for its description. */
export function nativeLauncher(
  path: string,
  cgroupFiles: readonly string[],
  socketDirectory: string,
): Omit<LaunchCommand, 'description'> {
  return { program: path, args: ['launch', ...cgroupFiles], env: {}, cwd: socketDirectory, fds: [] }
}

/** Descriptors the Node way of launching hands on, beside the pod's namespaces. */
export interface NodeLaunchFds {
  listen: number
  seccomp: number
  /** bwrap's options, NUL-terminated. */
  options: number
}

export const nodeInCell = '/run/corral/node'

/** The bwrap options of a cell with the Node supervisor, as they stand in the file behind `NodeLaunchFds.options`. */
export function nodeBwrapOptions(input: LaunchInput): string[] {
  const { supervisor, disableUserns } = input.config
  if (supervisor.kind !== 'node') throw new TypeError('the Node supervisor is needed here')
  const target = { source: supervisor.script, target: supervisorTarget }
  const options = bwrapOptions({ ...input, supervisor: target, disableUserns, asPid1: false, unshareNet: false })
  return [...options, '--ro-bind', supervisor.nodePath, nodeInCell]
}

/**
 * The same steps with system tools: a shell joins the cgroups, nsenter enters the namespaces, setpriv drops the uid.
 * Number 4 and 5, the namespaces, are closed again before bwrap, which hands on whatever it inherits.
 */
export function nodeLaunchCommand(input: LaunchInput, fds: NodeLaunchFds): LaunchCommand {
  const { config, pod, isRoot, network } = input
  const { supervisor } = config
  if (supervisor.kind !== 'node') throw new TypeError('the Node supervisor is needed here')
  const isWrapped = config.tier === 'bubblewrap'
  const inherited = [network?.netFd ?? fds.listen, network?.userFd ?? fds.listen, fds.listen, fds.seccomp, fds.options]
  const [listenFd, seccompFd, optionsFd] = [firstExtraFd + 2, firstExtraFd + 3, firstExtraFd + 4].map(String)
  const enter = network
    ? [
        'nsenter',
        `--net=/proc/self/fd/${firstExtraFd}`,
        ...(network.userFd === undefined ? [] : [`--user=/proc/self/fd/${firstExtraFd + 1}`, '--preserve-credentials']),
        '--',
      ]
    : []
  const shut = ['/bin/sh', '-c', 'exec "$@" 4<&- 5<&-', 'sh']
  const ids = [`--reuid=${pod.hostUid}`, `--regid=${pod.hostUid}`, '--clear-groups']
  const drop = ['setpriv', ...(isRoot ? ids : []), '--no-new-privs', '--']
  const wrap = [config.bwrapPath ?? 'bwrap', '--args', String(optionsFd), '--seccomp', String(seccompFd), '--']
  const inside = isWrapped ? [nodeInCell, supervisorTarget] : [supervisor.nodePath, supervisor.script]
  const command = [...enter, ...shut, ...drop, ...(isWrapped ? wrap : []), ...inside]
  return {
    program: '/bin/sh',
    args: [
      '-c',
      'ulimit -c 0; while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"',
      'sh',
      ...input.cgroupFiles,
      '--',
      ...command,
      'supervise',
      String(listenFd),
      String(controlFd),
      ...mountIdentities(input),
    ],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    cwd: input.socketDirectory,
    description: '',
    fds: inherited,
  }
}
