import { structuredCopy } from '../copies.js'
import type { KubeObject } from '../meta.js'
import { convertTo, isConvertible } from './conversion.js'
import { STATE_ANNOTATIONS } from './keys.js'

export interface ConvertedManifest {
  object: KubeObject
  /** What changed, one sentence each, for a person to read. Empty when the object is returned as it was. */
  changes: string[]
}

/**
 * A v1alpha1 manifest as a v1beta1 one fit for a file: no status and no state annotation. Lists are converted item by
 * item; whatever is not an Agent Sandbox v1alpha1 object comes back unchanged.
 */
export function convertManifest(manifest: KubeObject): ConvertedManifest {
  if (isList(manifest)) return convertList(manifest)
  if (!isConvertible(manifest) || !manifest.apiVersion?.endsWith('/v1alpha1')) {
    return { object: structuredCopy(manifest), changes: [] }
  }
  const target = manifest.apiVersion.replace(/v1alpha1$/, 'v1beta1')
  const { status, ...converted } = convertTo<KubeObject & { status?: unknown; spec?: object }>(manifest, target)
  const object = withoutState(converted)
  const name = `${manifest.kind} ${manifest.metadata?.name ?? manifest.metadata?.generateName ?? '(unnamed)'}`
  const changes = [`${name}: apiVersion is ${target} now`, ...specChanges(name, manifest, object)]
  if (status !== undefined) changes.push(`${name}: status left out, the controller writes it`)
  return { object, changes }
}

type List = KubeObject & { items: KubeObject[] }

function isList(manifest: KubeObject): manifest is List {
  return manifest.kind === 'List' && Array.isArray((manifest as Partial<List>).items)
}

function convertList(list: List): ConvertedManifest {
  const items = list.items.map(convertManifest)
  const object: List = { ...structuredCopy(list), items: items.map((item) => item.object) }
  return { object, changes: items.flatMap((item) => item.changes) }
}

function withoutState<T extends KubeObject>(object: T): T {
  const stateKey = STATE_ANNOTATIONS[object.kind as keyof typeof STATE_ANNOTATIONS]
  const { [stateKey]: _state, ...annotations } = object.metadata?.annotations ?? {}
  const { annotations: _all, ...metadata } = object.metadata ?? {}
  const kept = Object.keys(annotations).length > 0 ? { ...metadata, annotations } : metadata
  return { ...object, metadata: kept }
}

function specChanges(name: string, before: KubeObject, after: KubeObject): string[] {
  const old = specOf(before)
  const now = specOf(after)
  const changed = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter(
    (key) => JSON.stringify(old[key]) !== JSON.stringify(now[key]),
  )
  return changed.map((key) => {
    if (!(key in now)) return `${name}: spec.${key} (${JSON.stringify(old[key])}) has no place in v1beta1 and is gone`
    return `${name}: spec.${key} is ${JSON.stringify(now[key])}`
  })
}

function specOf(object: KubeObject): Record<string, unknown> {
  return (object as { spec?: Record<string, unknown> }).spec ?? {}
}
