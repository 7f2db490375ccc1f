import type { SnapshotInfo } from '@corral/ports'
import type { EnvironmentSettings } from '@corral/resources'
import type { KeyFile } from '../../repository/list-files.js'
import type { EnvironmentKey } from './environment-key.js'

/** What a snapshot of an environment says of itself, beside what every snapshot does. */
export interface SnapshotLabels {
  environment: string
  environmentUid: string
  build: string
  key: string
  baseKey: string
  commit: string
  files: KeyFile[]
  /** Not known of snapshots of earlier versions, and none of a plain checkout. */
  settings?: EnvironmentSettings | undefined
}

export interface BuiltSnapshot extends SnapshotLabels {
  name: string
  builtAt: string
  sizeBytes: number
  fileCount: number
}

export function labelsOf({ files, settings, ...labels }: SnapshotLabels): Record<string, string> {
  return { ...labels, files: JSON.stringify(files), ...(settings ? { settings: JSON.stringify(settings) } : {}) }
}

/** Undefined for one that no environment built. */
export function builtSnapshot({ name, labels, createdAt, bytes, files }: SnapshotInfo): BuiltSnapshot | undefined {
  const { environment, environmentUid, build, key, baseKey, commit } = labels
  if (!environment || !environmentUid || !build || !key || !baseKey || !commit) return undefined
  return {
    ...{ name, environment, environmentUid, build, key, baseKey, commit },
    files: fromJson<KeyFile[]>(labels.files) ?? [],
    settings: fromJson<EnvironmentSettings>(labels.settings),
    builtAt: createdAt,
    sizeBytes: bytes,
    fileCount: files,
  }
}

function fromJson<T>(text: string | undefined): T | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as T) // written by `labelsOf`
  } catch {
    return undefined
  }
}

/** The snapshot a task gets: one with its key, else the one whose lock files differ least, the newest first. Pure. */
export function chooseSnapshot(
  snapshots: readonly BuiltSnapshot[],
  wanted: EnvironmentKey,
): { snapshot: BuiltSnapshot; isExact: boolean } | undefined {
  const newestFirst = [...snapshots].sort((a, b) => (a.builtAt > b.builtAt ? -1 : 1))
  const exact = newestFirst.find(({ key }) => key === wanted.key)
  if (exact) return { snapshot: exact, isExact: true }
  const [nearest] = newestFirst
    .filter(({ baseKey }) => baseKey === wanted.baseKey)
    .map((snapshot) => ({ snapshot, differing: differing(snapshot.files, wanted.files) }))
    .sort((a, b) => a.differing - b.differing)
  return nearest && { snapshot: nearest.snapshot, isExact: false }
}

function differing(one: readonly KeyFile[], other: readonly KeyFile[]): number {
  const ids = (files: readonly KeyFile[]): Set<string> => new Set(files.map(({ path, oid }) => `${oid} ${path}`))
  const [a, b] = [ids(one), ids(other)]
  return [...a].filter((id) => !b.has(id)).length + [...b].filter((id) => !a.has(id)).length
}
