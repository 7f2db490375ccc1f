import { nulTerminated } from '../protocol/frames.js'
import type { SupervisorProgram } from '../protocol/messages.js'
import type { CellStrategy, LaunchInput } from './cell-strategy.js'

/** How a cell is started: a program, what it reads on its standard input, and descriptors from number 4 on. */
export interface LaunchCommand {
  program: string
  args: readonly string[]
  env: Record<string, string>
  cwd: string
  description: string
  fds: readonly number[]
}

const controlFd = 3
const firstExtraFd = 4
const openFiles = 65_536

/**
 * The launcher's description of a cell (see `native/launch.c`): cgroups and namespaces first, while we may still enter
 * them, then the pod's uid, then the tier's boundary with the supervisor in it.
 */
export function nativeLaunchCommand(
  input: LaunchInput,
  strategy: CellStrategy,
  supervisor: Extract<SupervisorProgram, { kind: 'native' }>,
): LaunchCommand {
  const { pod, isRoot } = input
  const records: string[] = []
  if (input.network) {
    const { netFd, userFd } = input.network
    // By path, not by inheritance: the launcher may have been started before the namespace existed.
    if (userFd !== undefined) records.push(`u/proc/${process.pid}/fd/${userFd}`)
    records.push(`n/proc/${process.pid}/fd/${netFd}`)
  }
  records.push(`lnofile=${openFiles}`, 'lcore=0')
  const processes = processLimit(input)
  if (processes !== undefined) records.push(`lnproc=${processes}`)
  records.push(`s${input.socketName}`, `c${controlFd}`)
  if (isRoot) records.push(`U${pod.hostUid}`, `G${pod.hostUid}`)
  records.push(...strategy.nativeRecords(input, supervisor))
  records.push('asupervise', 'a@listen', 'a@control', ...mountIdentities(input, strategy).map((word) => `a${word}`))
  return {
    ...nativeLauncher(supervisor.path, input.cgroupFiles, input.socketDirectory),
    description: nulTerminated(records, 'what a container is mounted from and at'),
  }
}

/**
 * How many processes a pod may have, for the kernel's limit per user, which means something only where every pod has a user
 * of its own. A little below the limit of its control group, so that this one refuses: it does so before the new process
 * gets a copy of its parent's memory, and that copy takes locks that all sandboxes share.
 */
function processLimit({ pod, plan, isRoot }: LaunchInput): number | undefined {
  const pids = pod.limits.pids ?? plan.limits.pids
  return isRoot && pids !== undefined ? pids - spareProcesses(pids) : undefined
}

const spareProcesses = (pids: number): number => Math.min(8, Math.floor(pids / 8))

/** Whether a pod with so many processes gets no more. */
export const isFull = (count: number, pids: number | undefined): boolean =>
  pids !== undefined && count >= pids - spareProcesses(pids)

/** What the supervisor looks at before it starts anything, in pairs: `device:inode` and where it must be. */
function mountIdentities({ plan }: LaunchInput, { hasMounts }: CellStrategy): string[] {
  if (!hasMounts) return []
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

/** The first number after the two namespaces and the socket that a cell with the Node supervisor inherits. */
export const firstFileFd: number = firstExtraFd + 3

/**
 * The same steps with system tools: a shell joins the cgroups, nsenter enters the namespaces, setpriv drops the uid.
 * Number 4 and 5, the namespaces, are closed again before bwrap, which hands on whatever it inherits.
 */
export function nodeLaunchCommand(
  input: LaunchInput,
  strategy: CellStrategy,
  inside: { listenFd: number; argv: readonly string[]; files: readonly number[] },
): LaunchCommand {
  const { pod, isRoot, network } = input
  const { listenFd } = inside
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
  const processes = processLimit(input)
  const limit = processes === undefined ? [] : ['prlimit', `--nproc=${processes}:${processes}`, '--']
  const drop = [...limit, 'setpriv', ...(isRoot ? ids : []), '--no-new-privs', '--']
  return {
    program: '/bin/sh',
    args: [
      '-c',
      'ulimit -c 0; echo 900 2>/dev/null > /proc/self/oom_score_adj; while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"',
      'sh',
      ...input.cgroupFiles,
      '--',
      ...enter,
      ...shut,
      ...drop,
      ...inside.argv,
      'supervise',
      String(firstExtraFd + 2),
      String(controlFd),
      ...mountIdentities(input, strategy),
    ],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    cwd: input.socketDirectory,
    description: '',
    fds: [network?.netFd ?? listenFd, network?.userFd ?? listenFd, listenFd, ...inside.files],
  }
}
