import type { ImageMap } from '@corral/node'
import { daemonImage } from './names.js'
import type { RuntimeFiles } from './runtime-files.js'

const insideDaemon = '/opt/corral/daemon'
const insideAgents = '/opt/corral/agents'

/** What `corral/daemon` stands for here: the daemon's bundle and the installed agents, bound in read-only. */
export function daemonImages(runtime: RuntimeFiles, agentsDirectory: string): ImageMap {
  return {
    [daemonImage]: {
      argv: ['node', '--max-old-space-size=48', '--max-semi-space-size=2', `${insideDaemon}/daemon.mjs`],
      env: { CORRAL_AGENTS: insideAgents },
      mounts: [
        { source: runtime.directory, target: insideDaemon, readOnly: true },
        { source: agentsDirectory, target: insideAgents, readOnly: true },
      ],
    },
  }
}
