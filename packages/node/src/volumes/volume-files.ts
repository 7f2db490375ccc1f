import type { Pod, Volume } from '@corral/resources'
import { fieldValue, type PodFacts, resourceValue } from '../launch/downward-api.js'
import { type ConfigSources, containerNamed } from '../launch/environment.js'
import { LaunchError } from '../launch/launch-error.js'

/** One file of a volume whose content comes from the API. */
export interface VolumeFile {
  path: string
  content: Uint8Array
  mode: number
}

export interface VolumeFilesInput {
  pod: Pod
  sources: ConfigSources
  facts: PodFacts
}

type KeyToPath = { key: string; path: string; mode?: number }
type Source = NonNullable<NonNullable<Volume['projected']>['sources']>[number]

const defaultMode = 0o644

/** The files of a configMap, secret, downwardAPI or projected volume; undefined for every other kind of volume. */
export function volumeFiles(volume: Volume, input: VolumeFilesInput): VolumeFile[] | undefined {
  if (volume.configMap) {
    const mode = volume.configMap.defaultMode ?? defaultMode
    return sourceFiles({ configMap: volume.configMap }, mode, volume.name, input)
  }
  if (volume.secret) {
    const { secretName, items, optional, defaultMode: mode = defaultMode } = volume.secret
    const secret = {
      ...(secretName ? { name: secretName } : {}),
      ...(items ? { items } : {}),
      ...(optional ? { optional } : {}),
    }
    return sourceFiles({ secret }, mode, volume.name, input)
  }
  if (volume.downwardAPI) {
    const mode = volume.downwardAPI.defaultMode ?? defaultMode
    return sourceFiles({ downwardAPI: volume.downwardAPI }, mode, volume.name, input)
  }
  if (volume.projected) {
    const mode = volume.projected.defaultMode ?? defaultMode
    return (volume.projected.sources ?? []).flatMap((source) => sourceFiles(source, mode, volume.name, input))
  }
  return undefined
}

function sourceFiles(source: Source, mode: number, volume: string, input: VolumeFilesInput): VolumeFile[] {
  const { pod, sources, facts } = input
  if (source.configMap) return objectFiles('configmap', sources.configMaps, source.configMap, mode, volume)
  if (source.secret) return objectFiles('secret', sources.secrets, source.secret, mode, volume)
  return (source.downwardAPI?.items ?? []).map((item) => {
    const container = containerNamed(pod, item.resourceFieldRef?.containerName)
    const value = item.fieldRef
      ? fieldValue(pod, item.fieldRef.fieldPath, facts)
      : item.resourceFieldRef && container
        ? resourceValue(container, item.resourceFieldRef, facts)
        : ''
    return file(item.path, Buffer.from(value), item.mode ?? mode, volume)
  })
}

function objectFiles(
  kind: 'configmap' | 'secret',
  objects: ConfigSources['configMaps'],
  reference: { name?: string; items?: KeyToPath[]; optional?: boolean },
  mode: number,
  volume: string,
): VolumeFile[] {
  const name = reference.name ?? ''
  const data = objects.get(name)
  if (!data) {
    if (reference.optional) return []
    throw new LaunchError(
      'FailedMount',
      `MountVolume.SetUp failed for volume "${volume}" : ${kind} "${name}" not found`,
    )
  }
  if (!reference.items) return Object.entries(data).map(([key, content]) => file(key, content, mode, volume))
  return reference.items.flatMap((item) => {
    const content = data[item.key]
    if (content) return [file(item.path, content, item.mode ?? mode, volume)]
    if (reference.optional) return []
    const problem = `references non-existent ${kind === 'configmap' ? 'config' : 'secret'} key: ${item.key}`
    throw new LaunchError('FailedMount', `MountVolume.SetUp failed for volume "${volume}" : ${problem}`)
  })
}

function file(path: string, content: Uint8Array, mode: number, volume: string): VolumeFile {
  const parts = path.split('/')
  if (path.startsWith('/') || parts.includes('..') || parts[0]?.startsWith('..') || path === '') {
    throw new LaunchError('FailedMount', `MountVolume.SetUp failed for volume "${volume}" : invalid path "${path}"`)
  }
  return { path, content, mode }
}
