import { writeFileSync } from 'node:fs'
import type { Pod } from '@corral/resources'
import { hasAliases, hostsFile } from '../launch/launch-plan.js'
import type { PodDirectories, PodRecord } from '../records/pod-directories.js'

/** Makes what every pod has in its directory; a turn later, so that a request to the isolation made just before has left. */
export async function fillDirectory(directories: PodDirectories, pod: Pod, record: PodRecord): Promise<void> {
  const { podUid, hostUid, podIP } = record
  await new Promise((resolve) => setImmediate(resolve))
  directories.fill(podUid, hostUid)
  if (hasAliases(pod)) writeFileSync(directories.paths(podUid).hosts, hostsFile(pod, podIP))
}
