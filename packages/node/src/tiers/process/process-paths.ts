import { homeOf } from '../../cradle/server/cell-files.js'
import type { LaunchPlan, PodPlan } from '../../isolation/isolation.js'

const workspace = '/workspace'

/**
 * A plan for a tier without mounts: paths below a mount's target become paths below its source, in arguments, in the
 * environment and for the working directory; HOME and TMPDIR point into the pod's own directories.
 */
export function withHostPaths(
  plan: LaunchPlan,
  pod: Pick<PodPlan, 'directory'>,
  own: { homeSource: string; tmpSource: string },
): LaunchPlan {
  const home = homeOf(plan)
  const mounts = [
    ...plan.mounts,
    { source: own.homeSource, target: home, readOnly: false },
    { source: own.tmpSource, target: '/tmp', readOnly: false },
  ]
    .filter(({ source, target }) => source !== target && target !== '/')
    .filter(({ target }, index, all) => all.findIndex((other) => other.target === target) === index)
    .sort((a, b) => b.target.length - a.target.length)
  const translate = (path: string): string => {
    for (const { source, target } of mounts) {
      if (path === target) return source
      if (path.startsWith(`${target}/`)) return source + path.slice(target.length)
    }
    return path
  }
  const translateList = (value: string): string =>
    value.startsWith('/') ? value.split(':').map(translate).join(':') : value
  const env = Object.fromEntries(Object.entries(plan.env).map(([name, value]) => [name, translateList(value)]))
  return {
    ...plan,
    argv: plan.argv.map(translate),
    workingDir: translate(plan.workingDir || '/'),
    env: {
      ...env,
      HOME: translate(home),
      TMPDIR: translate('/tmp'),
      CORRAL_DAEMON_SOCKET: `${pod.directory}/run/8888.sock`,
      // Without mounts the template's /workspace is where its volume lies.
      ...(translate(workspace) === workspace ? {} : { CORRAL_WORKSPACE: translate(workspace) }),
    },
  }
}
