import { join } from 'node:path'
import type { PodSpec } from '@corral/resources'
import { loadConfigSources } from './config-sources.js'
import type { PodVolumesInput } from './pod-volumes.js'
import { volumeFiles } from './volume-files.js'
import { writeVolume } from './write-volume.js'

/** Whether anything of the pod's volumes changes without its object changing. */
export function hasUpkeep(spec: PodSpec | undefined): spec is PodSpec {
  return (spec?.volumes ?? []).some(
    (volume) => volume.configMap || volume.secret || volume.projected || volume.downwardAPI,
  )
}

/** Brings files that come from ConfigMaps, Secrets and the pod itself up to date. */
export async function refreshVolumes(input: Omit<PodVolumesInput, 'sources' | 'isUidInUse' | 'claims'>): Promise<void> {
  const sources = await loadConfigSources(input.client, input.pod, input.signal)
  for (const volume of input.pod.spec?.volumes ?? []) {
    const files = volumeFiles(volume, { ...input, sources })
    if (files) await writeVolume(join(input.directory, volume.name), files, input.hostUid)
  }
}
