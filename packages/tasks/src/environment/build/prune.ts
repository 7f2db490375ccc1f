/** What may be kept. */
export interface SnapshotLimits {
  /** Snapshots of one environment. */
  perEnvironment: number
  /** Of all environments together, on the disk. */
  budgetBytes: number
  /** The age from which on a snapshot is built anew. */
  maxAgeMs: number
}

export const snapshotLimits: SnapshotLimits = {
  perEnvironment: 3,
  budgetBytes: 50 * 1024 ** 3,
  maxAgeMs: 7 * 24 * 60 * 60_000,
}

/** A task that was told of a snapshot has it attached within this time. */
const justUsedMs = 10 * 60_000

export interface KeptSnapshot {
  name: string
  environment: string
  builtAt: string
  lastUsedAt?: string | undefined
  sizeBytes: number
  isInUse: boolean
}

/**
 * The snapshots that are to go: beyond what an environment keeps the oldest, then, above the budget, the least recently used of
 * all. One that a pod has, or is about to get, stays; so does the newest of each environment while another may go instead. Pure.
 */
export function prunable(
  snapshots: readonly KeptSnapshot[],
  { perEnvironment, budgetBytes }: Pick<SnapshotLimits, 'perEnvironment' | 'budgetBytes'>,
  now: Date,
): string[] {
  const usedMs = ({ lastUsedAt, builtAt }: KeptSnapshot): number => Date.parse(lastUsedAt ?? builtAt)
  const mayGo = (each: KeptSnapshot): boolean => !each.isInUse && now.getTime() - usedMs(each) > justUsedMs
  const going = new Set<string>()
  const newest = new Set<string>()
  for (const name of new Set(snapshots.map(({ environment }) => environment))) {
    const own = snapshots
      .filter(({ environment }) => environment === name)
      .sort((a, b) => (a.builtAt > b.builtAt ? -1 : 1))
    if (own[0]) newest.add(own[0].name)
    // What is used at the moment counts as kept.
    for (const each of own.slice(perEnvironment)) if (!each.isInUse) going.add(each.name)
  }
  let bytes = snapshots.reduce((sum, { name, sizeBytes }) => sum + (going.has(name) ? 0 : sizeBytes), 0)
  const byUse = snapshots
    .filter((each) => !going.has(each.name) && mayGo(each))
    .sort((a, b) => Number(newest.has(a.name)) - Number(newest.has(b.name)) || usedMs(a) - usedMs(b))
  for (const each of byUse) {
    if (bytes <= budgetBytes) break
    going.add(each.name)
    bytes -= each.sizeBytes
  }
  return snapshots.flatMap(({ name }) => (going.has(name) ? [name] : []))
}
