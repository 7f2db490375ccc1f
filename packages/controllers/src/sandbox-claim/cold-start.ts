import {
  nameHash,
  ownerReferenceTo,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxTemplate,
  type Stored,
} from '@corral/resources'
import { annotations, labels } from '../shared/names.js'
import { withSecureDefaults } from '../shared/pod-spec-defaults.js'
import { injectEnv } from './env-injection.js'
import { claimPodMetadata, withIdentity } from './pod-metadata.js'
import { mergeVolumeTemplates } from './volume-templates.js'

/** The Sandbox made from the template for a claim that gets none from the pool. Throws what forbids it. */
export function coldSandbox(claim: Stored<SandboxClaim>, template: Stored<SandboxTemplate>): Sandbox {
  const { podTemplate, service, volumeClaimTemplates = [] } = template.spec
  const volumes = mergeVolumeTemplates(
    volumeClaimTemplates,
    claim.spec.volumeClaimTemplates ?? [],
    template.spec.volumeClaimTemplatesPolicy,
  )
  const templateRefHash = nameHash(template.metadata.name)
  const metadata = claimPodMetadata(claim, template, templateRefHash)
  const podSpec = injectEnv(podTemplate.spec, claim.spec.env ?? [], template.spec.envVarsInjectionPolicy)
  const trace = claim.metadata.annotations?.[annotations.traceContext]
  return {
    apiVersion: Sandboxes.apiVersion as 'agents.x-k8s.io/v1beta1',
    kind: 'Sandbox',
    metadata: {
      name: claim.metadata.name,
      ...(claim.metadata.namespace !== undefined && { namespace: claim.metadata.namespace }),
      labels: withIdentity({ [labels.launchType]: 'cold', [labels.templateRefHash]: templateRefHash }, claim),
      annotations: {
        [annotations.templateRef]: template.metadata.name,
        ...(trace !== undefined && { [annotations.traceContext]: trace }),
      },
      ownerReferences: [ownerReferenceTo(claim, SandboxClaims)],
    },
    spec: {
      podTemplate: { metadata, spec: withSecureDefaults(template, podSpec) },
      ...(volumes.length > 0 && { volumeClaimTemplates: volumes }),
      ...(service !== undefined && { service }),
    },
  }
}
