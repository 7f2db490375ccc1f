import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Logger } from '@corral/resources'
import type { SupervisorProgram } from '../cradle/protocol.js'
import { CradleIsolation } from './cradle-isolation.js'
import { defaultCradleEntry, defaultSupervisorPath, stageProgram } from './cradle-process.js'
import type { Isolation, ProbeReport } from './isolation.js'
import { IsolationError } from './isolation-error.js'
import { probeTier, remedyFor } from './probe.js'

export interface IsolationOptions {
  dataDir: string
  /** The compiled supervisor; looked for beside the package when left out, null to go without. */
  supervisorPath?: string | null
  /** The bundled Node supervisor, used where there is no compiled one. */
  supervisorScript?: string
  nodePath?: string
  cradleEntry?: string
  /** How long cells outlive a main that went away. */
  lonelyAfterMs?: number
  log?: Logger
}

const tenMinutesMs = 10 * 60_000

/** Cells in namespaces, made by bubblewrap: the default on Linux. */
export function bubblewrapIsolation(options: IsolationOptions): Isolation {
  const bwrapPath = findOnPath('bwrap')
  let disableUserns = true
  const isolation: CradleIsolation = new CradleIsolation({
    ...common(options),
    tier: 'bubblewrap',
    bwrapPath: bwrapPath ?? '/usr/bin/bwrap',
    disableUserns: () => disableUserns,
    probe: async () => {
      if (bwrapPath === undefined) return unusable('bubblewrap', 'no bubblewrap on this machine')
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
      disableUserns = false
      await isolation.restartIfIdle()
      const second = await probeTier('bubblewrap', { ...input, programs: [...programs, 'without --disable-userns'] })
      return second.usable ? second : report
    },
  })
  return isolation
}

/** Cells as plain processes: hygiene, not a sandbox. Only for those who ask for it. */
export function processIsolation(options: IsolationOptions): Isolation {
  const isolation: CradleIsolation = new CradleIsolation({
    ...common(options),
    tier: 'process',
    probe: async () => {
      const limits = await isolation.limits()
      const isRoot = process.getuid?.() === 0
      return {
        tier: 'process',
        usable: true,
        limits,
        checks: [
          { name: 'own session and environment', passed: true },
          { name: 'own uid', passed: isRoot, ...(isRoot ? {} : { detail: 'needs root' }) },
          { name: 'holds back hostile code', passed: false, detail: 'not a sandbox' },
        ],
      }
    },
  })
  return isolation
}

export interface PickedIsolation {
  isolation: Isolation
  report: ProbeReport
  /** Better tiers that were tried and why they are not used. */
  rejected: ProbeReport[]
}

/**
 * The best tier that passes its probe. Without `allowProcess` (or with `minimum: 'bubblewrap'`) it rejects with
 * `Unsupported`, carrying the remedy, instead of running code unconfined.
 */
export async function pickIsolation(
  options: IsolationOptions & { minimum?: 'bubblewrap' | 'process'; allowProcess: boolean },
): Promise<PickedIsolation> {
  const best = bubblewrapIsolation(options)
  const report = await best.probe()
  if (report.usable) return { isolation: best, report, rejected: [] }
  // Cells of an earlier main are not ours to end here; a cradle of the wrong tier is drained by whoever needs another.
  await best.close({ endPods: false })
  if (!options.allowProcess || options.minimum === 'bubblewrap') {
    const failed = report.checks.filter(({ passed }) => !passed).map(({ name, detail }) => detail ?? name)
    throw new IsolationError('Unsupported', `no sandbox on this machine (${failed.join('; ')}): ${report.remedy ?? ''}`)
  }
  const isolation = processIsolation(options)
  return { isolation, report: await isolation.probe(), rejected: [report] }
}

function common(options: IsolationOptions): Omit<ConstructorParameters<typeof CradleIsolation>[0], 'tier' | 'probe'> {
  const nodePath = options.nodePath ?? process.execPath
  return {
    dataDir: options.dataDir,
    nodePath,
    cradleEntry: options.cradleEntry ?? defaultCradleEntry(),
    supervisor: () => findSupervisor(options, nodePath),
    disableUserns: () => true,
    lonelyAfterMs: options.lonelyAfterMs ?? tenMinutesMs,
    ...(options.log ? { log: options.log } : {}),
  }
}

function findSupervisor(options: IsolationOptions, nodePath: string): SupervisorProgram {
  const compiled = options.supervisorPath === null ? undefined : (options.supervisorPath ?? defaultSupervisorPath())
  if (compiled !== undefined && statSync(compiled, { throwIfNoEntry: false })) {
    return { kind: 'native', path: stageProgram(options.dataDir, compiled) }
  }
  const script = options.supervisorScript ?? fileURLToPath(new URL('./node-supervisor.mjs', import.meta.url))
  if (!statSync(script, { throwIfNoEntry: false })) {
    throw new IsolationError(
      'Unsupported',
      'neither the compiled nor the bundled Node supervisor is here; run the set-up',
    )
  }
  const isSystemNode = nodePath.startsWith('/usr/')
  return {
    kind: 'node',
    nodePath: isSystemNode ? nodePath : stageProgram(options.dataDir, nodePath),
    script: stageProgram(options.dataDir, script),
  }
}

function unusable(tier: 'bubblewrap', problem: string): ProbeReport {
  const checks = [{ name: 'a cell starts', passed: false, detail: problem }]
  return { tier, usable: false, limits: 'none', checks, remedy: remedyFor(problem) }
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
