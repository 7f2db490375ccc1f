import { statSync } from 'node:fs'
import type { Logger } from '@corral/resources'
import { CradleIsolation } from './cradle-isolation.js'
import { defaultCradleEntry, defaultSupervisorPath, stageProgram } from './cradle-process.js'
import type { Isolation } from './isolation.js'
import { IsolationError } from './isolation-error.js'

export interface IsolationOptions {
  dataDir: string
  /** The compiled supervisor; found beside the package when left out. */
  supervisorPath?: string
  nodePath?: string
  cradleEntry?: string
  /** How long cells outlive a main that went away. */
  lonelyAfterMs?: number
  log?: Logger
}

const tenMinutesMs = 10 * 60_000

/** Cells in namespaces, made by bubblewrap: the default on Linux. */
export function bubblewrapIsolation(options: IsolationOptions): Isolation {
  return new CradleIsolation({
    ...common(options),
    tier: 'bubblewrap',
    bwrapPath: '/usr/bin/bwrap',
    probe: () => Promise.resolve({ tier: 'bubblewrap', usable: true, limits: 'enforced', checks: [] }),
  })
}

function common(options: IsolationOptions) {
  const supervisorPath = options.supervisorPath ?? defaultSupervisorPath()
  return {
    dataDir: options.dataDir,
    nodePath: options.nodePath ?? process.execPath,
    cradleEntry: options.cradleEntry ?? defaultCradleEntry(),
    supervisor: () => {
      if (!statSync(supervisorPath, { throwIfNoEntry: false })) {
        throw new IsolationError('Unsupported', 'the supervisor has not been built')
      }
      return { kind: 'native' as const, path: stageProgram(options.dataDir, supervisorPath) }
    },
    disableUserns: true,
    lonelyAfterMs: options.lonelyAfterMs ?? tenMinutesMs,
    ...(options.log ? { log: options.log } : {}),
  }
}
