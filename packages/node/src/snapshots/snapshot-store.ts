import { existsSync } from 'node:fs'
import type { SnapshotStore } from '@corral/ports'
import { defaultSupervisorPath } from '../cradle/client/cradle-process.js'
import { infoOf, type SealPorts, sealPod } from './seal-pod.js'

/** The store of a node: its directory, and its pods to seal. */
export function snapshotStore(
  ports: Omit<SealPorts, 'program'>,
  /** The compiled supervisor; looked for beside the package when left out, null to go without. */
  supervisorPath: string | null = defaultSupervisorPath(),
): SnapshotStore {
  const { directory } = ports
  const program = supervisorPath !== null && existsSync(supervisorPath) ? supervisorPath : undefined
  return {
    seal: (request) => sealPod({ ...ports, program }, request),
    list: () => directory.list().map(infoOf),
    find(name) {
      const record = directory.find(name)
      return record && infoOf(record)
    },
    inUse: (name) => directory.inUse(name),
    remove: (name) => directory.remove(name),
    // Only root may mount an overlay that remembers where a directory came from.
    canRename: process.getuid?.() === 0,
  }
}
