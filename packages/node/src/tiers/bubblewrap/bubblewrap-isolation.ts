import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { CradleIsolation } from '../../cradle/client/cradle-isolation.js'
import { defaultSupervisorPath } from '../../cradle/client/cradle-process.js'
import type { Isolation, ProbeReport } from '../../isolation/isolation.js'
import { cradleOptions, type IsolationOptions } from '../isolation-options.js'
import type { BubblewrapOptions } from './bubblewrap-cells.js'
import { readHostLayout } from './host-layout.js'
import { oneShotArgv } from './one-shot.js'
import { probeTier, remedyFor } from './probe.js'
import type { HostLayout } from './profile.js'

/** Cells in namespaces, made by bubblewrap: the default on Linux. */
export function bubblewrapIsolation(options: IsolationOptions): Isolation {
  const bwrapPath = findOnPath('bwrap')
  const tierOptions: BubblewrapOptions = { bwrapPath: bwrapPath ?? '/usr/bin/bwrap', disableUserns: true }
  let layout: HostLayout | undefined
  const host = (): HostLayout => (layout ??= readHostLayout())
  const isolation: CradleIsolation = new CradleIsolation({
    ...cradleOptions(options),
    tier: 'bubblewrap',
    tierOptions: () => ({ ...tierOptions }),
    mapsPortsToSockets: false,
    confine: (command) => oneShotArgv(tierOptions.bwrapPath, host(), command),
    probe: async () => {
      if (bwrapPath === undefined) return unusable('no bubblewrap on this machine')
      const { dataDir } = options
      const { supervisorPath, supervisorScript = '' } = options
      const programs = [
        bwrapPath,
        supervisorPath === null ? supervisorScript : (supervisorPath ?? defaultSupervisorPath()),
      ]
      const input = { isolation, dataDir, limits: () => isolation.limits(), programs }
      const report = await probeTier('bubblewrap', input)
      if (report.usable || !report.checks.some(({ detail }) => /userns|user namespace/i.test(detail ?? '')))
        return report
      // Some kernels refuse this one option; the system call filter refuses new namespaces all the same.
      tierOptions.disableUserns = false
      await isolation.restartIfIdle()
      const second = await probeTier('bubblewrap', { ...input, programs: [...programs, 'without --disable-userns'] })
      return second.usable ? second : report
    },
  })
  return isolation
}

function unusable(problem: string): ProbeReport {
  const checks = [{ name: 'a cell starts', passed: false, detail: problem }]
  return { tier: 'bubblewrap', usable: false, limits: 'none', checks, remedy: remedyFor(problem) }
}

function findOnPath(name: string): string | undefined {
  for (const directory of (process.env.PATH ?? '/usr/bin:/bin').split(delimiter)) {
    const path = join(directory, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not in this one.
    }
  }
  return undefined
}
