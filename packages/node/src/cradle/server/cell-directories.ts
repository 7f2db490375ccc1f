import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LaunchPlan, PodPlan } from '../../isolation/isolation.js'
import { etcContents } from './cell-files.js'
import type { CellDirectories } from './cell-strategy.js'

/** Makes what a cell gets of the pod's directory: files of /etc of its own, home and /tmp with the pod's other cells. */
export function makeCellDirectories(pod: PodPlan, plan: LaunchPlan, isRoot: boolean): CellDirectories {
  const etcDirectory = join(pod.directory, 'etc', plan.container)
  mkdirSync(etcDirectory, { recursive: true })
  for (const [name, text] of Object.entries(etcContents(pod, plan))) writeFileSync(join(etcDirectory, name), text)
  const own = { homeSource: join(pod.directory, 'home'), tmpSource: join(pod.directory, 'tmp') }
  for (const directory of Object.values(own)) {
    if (mkdirSync(directory, { recursive: true }) === undefined || !isRoot) continue
    chownSync(directory, pod.hostUid, pod.hostUid)
  }
  chmodSync(own.tmpSource, 0o1777)
  return { etcDirectory, ...own }
}
