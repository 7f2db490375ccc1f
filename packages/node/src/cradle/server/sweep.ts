import { Cgroup, type CgroupSupport } from './cgroups.js'
import { killUid } from './process-table.js'
import type { StateFiles } from './state-files.js'

/**
 * Clears up after a cradle that died: ends whatever is left in its groups and under its pods' uids, and marks its
 * cells as lost, so that the next main hears how they ended. Runs before anything new is started.
 */
export async function sweep(ports: { stateFiles: StateFiles; cgroups: CgroupSupport; now: () => Date }): Promise<void> {
  const { stateFiles, cgroups, now } = ports
  for (const groups of [cgroups, stateFiles.groups()]) if (groups) await emptyGroups(new Cgroup(groups, ''))
  stateFiles.writeGroups(cgroups)
  const isRoot = process.getuid?.() === 0
  for (const { hostUid } of stateFiles.pods()) if (isRoot && hostUid !== 0) await killUid(hostUid)
  const at = now().toISOString()
  for (const cell of stateFiles.cells()) {
    if (cell.exit) continue
    const exit = { exitCode: 137, signal: 9, oomKilled: false, startedAt: cell.startedAt, finishedAt: at, lost: true }
    stateFiles.writeCell({ ...cell, exit })
  }
  for (const { podUid } of stateFiles.pods()) {
    if (!stateFiles.cells().some((cell) => cell.podUid === podUid)) stateFiles.removePod(podUid)
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
