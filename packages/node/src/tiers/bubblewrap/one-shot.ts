import type { OneShotCommand } from '../../isolation/isolation.js'
import type { HostLayout } from './profile.js'

/**
 * The argument vector that runs one command of the host's own in namespaces of its own and waits for it: no network,
 * no other process, no capability, nothing of the disk but the toolchain and the directories it is given, which keep
 * their paths. It is not a cell: no supervisor, no uid of its own outside; it costs a few milliseconds and leaves
 * nothing to clean up.
 */
export function oneShotArgv(bwrapPath: string, host: HostLayout, command: OneShotCommand): string[] {
  const words = [bwrapPath, '--ro-bind', '/usr', '/usr']
  for (const { name, target } of host.links) words.push('--symlink', target, `/${name}`)
  for (const name of host.directories) words.push('--ro-bind', `/${name}`, `/${name}`)
  words.push('--ro-bind-try', '/etc/ld.so.cache', '/etc/ld.so.cache', '--dev', '/dev', '--tmpfs', '/tmp')
  for (const path of command.readable) words.push('--ro-bind', path, path)
  for (const path of command.writable) words.push('--bind', path, path)
  words.push('--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-uts', '--unshare-net')
  words.push('--unshare-cgroup-try', '--uid', '65534', '--gid', '65534', '--cap-drop', 'ALL')
  words.push('--die-with-parent', '--new-session', '--', ...command.argv)
  return words
}
