import { Cgroup, type CgroupSupport } from './cgroups.js'
import type { Journal } from './journal.js'
import { killUid } from './process-table.js'

/**
 * Clears up after a cradle that died: ends whatever is left in its groups and under its pods' uids, and marks its
 * cells as lost, so that the next main hears how they ended. Runs before anything new is started.
 */
export async function sweep(ports: { journal: Journal; cgroups: CgroupSupport; now: () => Date }): Promise<void> {
  const { journal, cgroups, now } = ports
  for (const groups of [cgroups, journal.groups()]) if (groups) await emptyGroups(new Cgroup(groups, ''))
  journal.writeGroups(cgroups)
  const isRoot = process.getuid?.() === 0
  for (const { hostUid } of journal.pods()) if (isRoot && hostUid !== 0) await killUid(hostUid)
  const at = now().toISOString()
  for (const cell of journal.cells()) {
    if (cell.exit) continue
    const exit = { exitCode: 137, signal: 9, oomKilled: false, startedAt: cell.startedAt, finishedAt: at, lost: true }
    journal.writeCell({ ...cell, exit })
  }
  for (const { podUid } of journal.pods()) {
    if (!journal.cells().some((cell) => cell.podUid === podUid)) journal.removePod(podUid)
  }
}

async function emptyGroups(root: Cgroup): Promise<void> {
  await Promise.all(
    root.children().map(async (name) => {
      const group = root.child(name)
      await group.kill()
      group.remove()
    }),
  )
}
