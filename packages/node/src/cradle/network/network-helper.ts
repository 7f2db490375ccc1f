import type { SupervisorProgram } from '../protocol/messages.js'

/** The descriptors a joining helper inherits: the pod's network namespace and, without root, its user namespace. */
export const joinedFds = { net: 4, user: 5 } as const

export interface HelperCommand {
  program: string
  args: readonly string[]
}

/** Who makes a network namespace (or works in an existing one), with the compiled program or with system tools. */
export function networkHelper(supervisor: SupervisorProgram, mode: 'make' | 'join', isRoot: boolean): HelperCommand {
  const { net, user } = joinedFds
  if (supervisor.kind === 'native') {
    const own = mode === 'make' ? (isRoot ? [] : ['--user']) : ['--join', String(net)]
    const joinUser = mode === 'join' && !isRoot ? ['--join-user', String(user)] : []
    return { program: supervisor.path, args: ['netns', ...joinUser, ...own] }
  }
  const inside = [supervisor.nodePath, supervisor.script, 'netns']
  if (mode === 'make') {
    return { program: 'unshare', args: ['--net', ...(isRoot ? [] : ['--user', '--map-root-user']), '--', ...inside] }
  }
  const namespaces = [`--net=/proc/self/fd/${net}`, ...(isRoot ? [] : [`--user=/proc/self/fd/${user}`])]
  return { program: 'nsenter', args: [...namespaces, ...(isRoot ? [] : ['--preserve-credentials']), '--', ...inside] }
}
