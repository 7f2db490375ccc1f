import { etcFiles, homeOf, hostnameOf } from '../../cradle/server/cell-files.js'
import type { LaunchPlan, PodPlan } from '../../isolation/isolation.js'
import type { ImageEntryMount } from './image-layout.js'

/** What of the host every cell sees, read-only; found once per start, see `readHostLayout`. */
export interface HostLayout {
  /** Top-level names that are links into /usr: bin, sbin, lib, lib64. */
  links: readonly { name: string; target: string }[]
  /** Top-level names of the same kind that are directories of their own. */
  directories: readonly string[]
  /** Files and directories below /etc that programs need and that hold nothing private. */
  etc: readonly string[]
}

export interface ProfileInput {
  pod: PodPlan
  plan: LaunchPlan
  host: HostLayout
  /** What the root consists of where the plan has one of an image; see `imageLayout`. */
  image?: readonly ImageEntryMount[]
  /** Where the supervisor lies on the host, and where it appears in the cell. */
  supervisor: { source: string; target: string }
  /** Files the cradle writes for this cell: resolv.conf, hosts, passwd, group. */
  etcDirectory: string
  homeSource: string
  tmpSource: string
  /** Where the kernel counts what it ended of the cell for want of memory. */
  memoryEventsFile?: string | undefined
  /** False on hosts whose kernel refuses it; the seccomp filter holds the line there. */
  disableUserns: boolean
  /** False when the network namespace was entered before bwrap. */
  unshareNet: boolean
}

const rootSizeBytes = 64 * 1024 * 1024

export const supervisorTarget = '/run/corral/supervisor'
/** Known to the daemon, which tells from it that a process did not end by itself. */
const memoryEventsTarget = '/run/corral/memory.events'

/**
 * The complete boundary as bwrap options: an empty root, read-only toolchain, the plan's mounts, all namespaces, no
 * capability, no terminal of the caller. The caller adds the seccomp filter and has already dropped to the pod's uid.
 */
export function bwrapOptions(input: ProfileInput): string[] {
  const { pod, plan, host } = input
  const options: string[] = []
  const add = (...words: string[]): void => {
    options.push(...words)
  }
  add('--size', String(rootSizeBytes), '--tmpfs', '/')
  if (input.image) for (const each of input.image) add(...imageWords(each))
  else {
    add('--ro-bind', '/usr', '/usr')
    for (const { name, target } of host.links) add('--symlink', target, `/${name}`)
    for (const name of host.directories) add('--ro-bind', `/${name}`, `/${name}`)
    for (const path of host.etc) add('--ro-bind', path, path)
  }
  for (const name of etcFiles) add('--ro-bind', `${input.etcDirectory}/${name}`, `/etc/${name}`)
  add('--proc', '/proc', '--dev', '/dev', '--size', String(rootSizeBytes), '--tmpfs', '/run')
  // An image has them by itself, from its import.
  if (!input.image) add('--dir', '/var', '--symlink', '/run', '/var/run', '--symlink', '/tmp', '/var/tmp')
  add('--ro-bind', input.supervisor.source, input.supervisor.target)
  if (input.memoryEventsFile) add('--ro-bind-try', input.memoryEventsFile, memoryEventsTarget)
  const binds = completeMounts(input).map(({ source, target, readOnly }) => ({
    target,
    words: [readOnly ? '--ro-bind' : '--bind', source, target],
  }))
  const memory = plan.tmpfs.map(({ target, sizeBytes }) => ({
    target,
    words: [...(sizeBytes === undefined ? [] : ['--size', String(sizeBytes)]), '--tmpfs', target],
  }))
  // What is mounted later hides what lies below it.
  for (const { words } of [...binds, ...memory].sort(byDepth)) add(...words)
  if (plan.readOnlyRoot) add('--remount-ro', '/')
  add('--unshare-user', '--unshare-ipc', '--unshare-pid', '--as-pid-1', '--unshare-uts', '--unshare-cgroup-try')
  if (input.unshareNet) add('--unshare-net')
  if (input.disableUserns) add('--disable-userns')
  add('--uid', String(plan.uid), '--gid', String(plan.gid), '--hostname', hostnameOf(pod))
  add('--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--clearenv', '--chdir', '/')
  return options
}

function imageWords(entry: ImageEntryMount): string[] {
  if (entry.link !== undefined) return ['--symlink', entry.link, entry.target]
  return entry.source === undefined ? ['--dir', entry.target] : ['--ro-bind', entry.source, entry.target]
}

/** The plan's mounts, parents before children, with HOME and /tmp added where the plan has none of its own. */
export function completeMounts(
  input: Pick<ProfileInput, 'plan' | 'homeSource' | 'tmpSource'>,
): { source: string; target: string; readOnly: boolean }[] {
  const { plan } = input
  const targets = new Set([...plan.mounts, ...plan.tmpfs].map(({ target }) => target))
  const added = [
    { source: input.tmpSource, target: '/tmp', readOnly: false },
    { source: input.homeSource, target: homeOf(plan), readOnly: false },
  ].filter(({ target }) => target !== '/' && !targets.has(target))
  return [...added, ...plan.mounts].sort(byDepth)
}

const byDepth = (a: { target: string }, b: { target: string }): number =>
  a.target.split('/').length - b.target.split('/').length
