import type { Isolation, ProbeReport, Tier } from '../isolation/isolation.js'
import { IsolationError } from '../isolation/isolation-error.js'
import { bubblewrapIsolation } from './bubblewrap/bubblewrap-isolation.js'
import type { IsolationOptions } from './isolation-options.js'
import { processIsolation } from './process/process-isolation.js'

interface TierEntry {
  /** Holds back hostile code. Without it a tier only keeps order, and is used by those who ask for it. */
  isSandbox: boolean
  open(options: IsolationOptions): Isolation
}

/** Every tier, the strongest first. What each does inside the cradle is in `cellStrategies`. */
const tiers: Readonly<Record<Tier, TierEntry>> = {
  bubblewrap: { isSandbox: true, open: bubblewrapIsolation },
  process: { isSandbox: false, open: processIsolation },
}

export const tierNames: readonly Tier[] = Object.keys(tiers) as Tier[]

/** Whether the tier of this name holds back hostile code. A name of another version does not count as one that does. */
export function isSandboxTier(name: string): boolean {
  return tierNames.some((tier) => tier === name && tiers[tier].isSandbox)
}

export interface PickedIsolation {
  isolation: Isolation
  report: ProbeReport
  /** Better tiers that were tried and why they are not used. */
  rejected: ProbeReport[]
}

export interface PickOptions extends IsolationOptions {
  /** This tier and no other. */
  tier?: Tier | undefined
  /** Falls back to a tier that is not a sandbox where no better one works. */
  allowUnconfined?: boolean
}

/**
 * The strongest tier that passes its probe. A tier that is not a sandbox is used only by name or with `allowUnconfined`;
 * otherwise the call rejects with `Unsupported`, carrying the remedy, instead of running code unconfined.
 */
export async function pickIsolation(options: PickOptions): Promise<PickedIsolation> {
  const rejected: ProbeReport[] = []
  for (const tier of options.tier === undefined ? tierNames : [options.tier]) {
    const { isSandbox, open } = tiers[tier]
    if (!isSandbox && options.tier === undefined && options.allowUnconfined !== true) continue
    const isolation = open(options)
    const report = await isolation.probe()
    if (report.usable) return { isolation, report, rejected }
    rejected.push(report)
    // Cells of an earlier main may run here: the main that can use them ends or adopts them.
    await isolation.close({ endPods: false })
  }
  const failed = rejected.flatMap(({ checks }) => checks.filter(({ passed }) => !passed))
  throw new IsolationError(
    'Unsupported',
    `no sandbox on this machine (${failed.map(({ name, detail }) => detail ?? name).join('; ')}): ${rejected[0]?.remedy ?? ''}`,
  )
}
