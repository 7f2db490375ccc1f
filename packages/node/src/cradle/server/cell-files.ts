import { posix } from 'node:path'
import type { LaunchPlan, PodPlan } from '../../isolation/isolation.js'

const defaultHome = '/home/agent'

/** Files below /etc that every cell has of its own. */
export const etcFiles = ['resolv.conf', 'hosts', 'hostname', 'passwd', 'group'] as const

export function homeOf(plan: Pick<LaunchPlan, 'env'>): string {
  const home = plan.env.HOME
  // Without `..`: it is mounted at as well.
  return home?.startsWith('/') ? posix.resolve(home) : defaultHome
}

/** The environment of the main process: a usable PATH and HOME under whatever the plan says. */
export function cellEnvironment(plan: LaunchPlan, pod: PodPlan): Record<string, string> {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOSTNAME: hostnameOf(pod),
    ...(plan.tty ? { TERM: 'xterm' } : {}),
    ...plan.env,
    HOME: homeOf(plan),
  }
}

export function hostnameOf(pod: PodPlan): string {
  return (pod.hostname || pod.name).slice(0, 63)
}

/** The files that tell programs in a cell who they are and whom to ask for names. */
export function etcContents(
  pod: PodPlan,
  plan: Pick<LaunchPlan, 'uid' | 'gid' | 'env'>,
): Record<(typeof etcFiles)[number], string> {
  const name = hostnameOf(pod)
  const home = homeOf(plan)
  const user = plan.uid === 0 ? '' : `agent:x:${plan.uid}:${plan.gid}:agent:${home}:/bin/sh\n`
  const group = plan.gid === 0 ? '' : `agent:x:${plan.gid}:\n`
  return {
    'resolv.conf': `search ${pod.namespace}.svc.cluster.local svc.cluster.local cluster.local\nnameserver 127.0.0.1\noptions ndots:5 timeout:2 attempts:2\n`,
    hosts: `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n${pod.podIP} ${name}\n`,
    hostname: `${name}\n`,
    passwd: `root:x:0:0:root:${plan.uid === 0 ? home : '/root'}:/bin/sh\n${user}nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`,
    group: `root:x:0:\n${group}nogroup:x:65534:\n`,
  }
}
