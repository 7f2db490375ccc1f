import type { ImageMap } from '@corral/node'
import { daemonImage } from './names.js'
import type { RuntimeFiles } from './runtime-files.js'

const insideDaemon = '/opt/corral/daemon'
const insideAgents = '/opt/corral/agents'
const insideToolchains = '/opt/corral/toolchains'

/**
 * What images stand for here. `corral/daemon`: the daemon's bundle, the installed agents and toolchains, bound in read-only. Upstream's
 * runtimes: the same daemon, which speaks their protocols. Upstream's pause image: a process that sleeps.
 */
export function daemonImages(
  runtime: RuntimeFiles,
  { agents, toolchains }: { agents: string; toolchains: string },
): ImageMap {
  const daemon = {
    argv: ['node', '--max-old-space-size=48', '--max-semi-space-size=2', `${insideDaemon}/daemon.mjs`],
    env: { CORRAL_AGENTS: insideAgents, CORRAL_TOOLCHAINS: insideToolchains },
    mounts: [
      { source: runtime.directory, target: insideDaemon, readOnly: true },
      { source: agents, target: insideAgents, readOnly: true },
      { source: toolchains, target: insideToolchains, readOnly: true },
    ],
  }
  return {
    [daemonImage]: daemon,
    '*/python-runtime-sandbox': daemon,
    '*/sandboxd': { ...daemon, env: { ...daemon.env, CORRAL_DAEMON_SANDBOXD: 'true' } },
    '*/pause': { argv: ['/bin/sleep', 'infinity'] },
  }
}
