import {
  nameHash,
  type Sandbox,
  type SandboxTemplate,
  semanticEqual,
  type VolumeClaimTemplate,
} from '@corral/resources'
import { withSecureDefaults } from './pod-spec-defaults.js'

export interface TemplateHashes {
  /** Of pod template, volumes and service: what decides whether a pool member is of the current template. */
  blueprint: string
  /** Of the pod template alone; informational. */
  podTemplate: string
}

const known = new WeakMap<SandboxTemplate, TemplateHashes>()

/** Hashes of a template, computed once per object. Equal hashes mean equal content; unequal ones need `sameBlueprint`. */
export function templateHashes(template: SandboxTemplate): TemplateHashes {
  const cached = known.get(template)
  if (cached) return cached
  const { podTemplate, volumeClaimTemplates, service } = template.spec
  const pod = { spec: podTemplate.spec, metadata: podTemplate.metadata ?? {} }
  const hashes = {
    blueprint: nameHash(stableJson({ podTemplate: pod, volumeClaimTemplates, service })),
    podTemplate: nameHash(stableJson(pod)),
  }
  known.set(template, hashes)
  return hashes
}

/**
 * Whether the sandbox runs what the template asks for. Metadata of pod template and volumes does not count: it never
 * makes a running Pod outdated.
 */
export function sameBlueprint(template: SandboxTemplate, sandbox: Sandbox): boolean {
  const { podTemplate, volumeClaimTemplates = [], service } = template.spec
  return (
    service === sandbox.spec.service &&
    sameVolumes(volumeClaimTemplates, sandbox.spec.volumeClaimTemplates ?? []) &&
    semanticEqual(withSecureDefaults(template, podTemplate.spec), sandbox.spec.podTemplate.spec)
  )
}

function sameVolumes(a: readonly VolumeClaimTemplate[], b: readonly VolumeClaimTemplate[]): boolean {
  if (a.length !== b.length) return false
  return a.every(
    (volume, at) => volume.metadata?.name === b[at]?.metadata?.name && semanticEqual(volume.spec, b[at]?.spec),
  )
}

/** JSON with sorted keys: two reads of one object hash alike however the server ordered them. */
function stableJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (typeof item !== 'object' || item === null || Array.isArray(item)) return item
    return Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
