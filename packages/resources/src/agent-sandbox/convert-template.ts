import { ConversionError } from './conversion-error.js'
import { POLICY_ANNOTATION } from './keys.js'
import type { SandboxTemplateV1alpha1 } from './v1alpha1.js'
import type { SandboxTemplate } from './v1beta1.js'

type Policy = NonNullable<SandboxTemplate['spec']['volumeClaimTemplatesPolicy']>
const POLICIES: readonly string[] = ['Disallowed', 'Allowed', 'Overrides'] satisfies Policy[]

/** The policy travels in an annotation while the object is v1alpha1. */
export function templateToHub(source: SandboxTemplateV1alpha1): SandboxTemplate {
  const { [POLICY_ANNOTATION]: policy, ...annotations } = source.metadata?.annotations ?? {}
  if (policy === undefined) return withMetadata(source.metadata, source.spec)
  if (!POLICIES.includes(policy)) {
    throw new ConversionError(`invalid VolumeClaimTemplatesPolicy annotation value: ${JSON.stringify(policy)}`)
  }
  const metadata = annotated(source.metadata, annotations)
  return withMetadata(metadata, { ...source.spec, volumeClaimTemplatesPolicy: policy as Policy })
}

export function templateFromHub(source: SandboxTemplate): SandboxTemplateV1alpha1 {
  const { volumeClaimTemplatesPolicy: policy, ...spec } = source.spec
  const { [POLICY_ANNOTATION]: stale, ...annotations } = source.metadata?.annotations ?? {}
  if (!policy && stale === undefined) return withMetadata(source.metadata, spec)
  const carried = policy ? { ...annotations, [POLICY_ANNOTATION]: policy } : annotations
  return withMetadata(annotated(source.metadata, carried), spec)
}

function withMetadata<S>(metadata: SandboxTemplate['metadata'], spec: S): { metadata?: typeof metadata & {}; spec: S } {
  return metadata ? { metadata, spec } : { spec }
}

function annotated(
  metadata: SandboxTemplate['metadata'],
  annotations: Record<string, string>,
): NonNullable<SandboxTemplate['metadata']> {
  const { annotations: _all, ...rest } = metadata ?? {}
  return Object.keys(annotations).length > 0 ? { ...rest, annotations } : rest
}
