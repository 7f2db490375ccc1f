import { structuredCopy } from '../copies.js'
import type { KubeObject, ObjectMeta } from '../meta.js'
import { ConversionError } from './conversion-error.js'
import { claimFromHub, claimToHub } from './convert-claim.js'
import { sandboxFromHub, sandboxToHub } from './convert-sandbox.js'
import { templateFromHub, templateToHub } from './convert-template.js'
import { poolFromHub, poolToHub } from './convert-warm-pool.js'
import { STATE_ANNOTATIONS } from './keys.js'
import type {
  SandboxClaimV1alpha1,
  SandboxTemplateV1alpha1,
  SandboxV1alpha1,
  SandboxWarmPoolV1alpha1,
} from './v1alpha1.js'
import type { Sandbox, SandboxClaim, SandboxTemplate, SandboxWarmPool } from './v1beta1.js'

export { ConversionError } from './conversion-error.js'

type ConvertibleKind = keyof typeof STATE_ANNOTATIONS
const GROUPS: Readonly<Record<ConvertibleKind, string>> = {
  Sandbox: 'agents.x-k8s.io',
  SandboxClaim: 'extensions.agents.x-k8s.io',
  SandboxTemplate: 'extensions.agents.x-k8s.io',
  SandboxWarmPool: 'extensions.agents.x-k8s.io',
}

/** Whether `convertTo` knows the object's kind. */
export function isConvertible(object: KubeObject): boolean {
  const kind = object.kind as ConvertibleKind
  const [group, version] = (object.apiVersion ?? '').split('/')
  return Object.hasOwn(GROUPS, kind) && GROUPS[kind] === group && (version === 'v1alpha1' || version === 'v1beta1')
}

/**
 * The object in another version of its kind. v1beta1 is the hub: on the way up the whole v1alpha1 object is kept in an
 * annotation, on the way down it helps to restore what v1beta1 has no place for. The source is never changed.
 * Throws a `ConversionError` for unknown kinds, unknown versions and unreadable state.
 */
export function convertTo<T extends KubeObject = KubeObject>(object: KubeObject, apiVersion: string): T {
  if (!isConvertible(object))
    throw new ConversionError(`cannot convert ${object.apiVersion ?? ''} ${object.kind ?? ''}`)
  const kind = object.kind as ConvertibleKind
  const group = GROUPS[kind]
  // The caller names the type that belongs to apiVersion.
  const result = (value: KubeObject): T => ({ ...value, apiVersion, kind }) as T
  if (object.apiVersion === apiVersion) return result(structuredCopy(object))
  if (apiVersion === `${group}/v1beta1`) return result(toHub(kind, structuredCopy(object)))
  if (apiVersion === `${group}/v1alpha1`) return result(fromHub(kind, structuredCopy(object)))
  throw new ConversionError(`${kind} has no version ${apiVersion}`)
}

function toHub(kind: ConvertibleKind, source: KubeObject): KubeObject {
  const metadata = withoutAnnotation(source.metadata, STATE_ANNOTATIONS[kind])
  const state = JSON.stringify({ ...source, metadata })
  const converted = mapToHub(kind, { ...source, metadata })
  return {
    ...converted,
    metadata: {
      ...converted.metadata,
      annotations: { ...converted.metadata?.annotations, [STATE_ANNOTATIONS[kind]]: state },
    },
  }
}

function mapToHub(kind: ConvertibleKind, source: KubeObject): KubeObject {
  // The API server or the caller's schema has established the shape; kind and version were checked above.
  switch (kind) {
    case 'Sandbox':
      return sandboxToHub(source as SandboxV1alpha1)
    case 'SandboxClaim':
      return claimToHub(source as SandboxClaimV1alpha1)
    case 'SandboxTemplate':
      return templateToHub(source as SandboxTemplateV1alpha1)
    case 'SandboxWarmPool':
      return poolToHub(source as SandboxWarmPoolV1alpha1)
  }
}

function fromHub(kind: ConvertibleKind, source: KubeObject): KubeObject {
  const stateText = source.metadata?.annotations?.[STATE_ANNOTATIONS[kind]]
  const stripped = { ...source, metadata: withoutAnnotation(source.metadata, STATE_ANNOTATIONS[kind]) }
  switch (kind) {
    case 'Sandbox':
      return sandboxFromHub(stripped as Sandbox, stateOf<SandboxV1alpha1>(kind, stateText))
    case 'SandboxClaim':
      return claimFromHub(stripped as SandboxClaim, stateOf<SandboxClaimV1alpha1>(kind, stateText))
    case 'SandboxTemplate':
      return templateFromHub(stripped as SandboxTemplate)
    case 'SandboxWarmPool':
      return poolFromHub(stripped as SandboxWarmPool)
  }
}

function stateOf<T extends KubeObject>(kind: ConvertibleKind, text: string | undefined): T | undefined {
  if (text === undefined) return undefined
  try {
    const state: unknown = JSON.parse(text)
    if (typeof state === 'object' && state !== null && !Array.isArray(state)) return state as T
    throw new SyntaxError('not an object')
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new ConversionError(`failed to unmarshal v1alpha1 ${kind} state: ${reason}`, { cause })
  }
}

/** Metadata without one annotation, and without an annotations map that held nothing else. */
function withoutAnnotation(metadata: ObjectMeta | undefined, key: string): ObjectMeta {
  if (metadata?.annotations?.[key] === undefined) return metadata ?? {}
  const { [key]: _removed, ...annotations } = metadata.annotations
  const { annotations: _all, ...rest } = metadata
  return Object.keys(annotations).length > 0 ? { ...rest, annotations } : rest
}
