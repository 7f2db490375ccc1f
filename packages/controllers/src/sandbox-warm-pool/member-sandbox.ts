import {
  nameHash,
  ownerReferenceTo,
  type Sandbox,
  Sandboxes,
  type SandboxTemplate,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { templateHashes } from '../shared/blueprint.js'
import { annotations, labels } from '../shared/names.js'
import { withSecureDefaults } from '../shared/pod-spec-defaults.js'

/** The Sandbox a pool makes from its template. The server completes its name. */
export function memberSandbox(
  pool: Stored<SandboxWarmPool>,
  template: Stored<SandboxTemplate>,
  options: { markEvictable: boolean },
): Sandbox {
  const { podTemplate, volumeClaimTemplates, service } = template.spec
  const hashes = templateHashes(template)
  const shared = {
    [labels.warmPool]: nameHash(pool.metadata.name),
    [labels.templateRefHash]: nameHash(template.metadata.name),
    [labels.podTemplateHash]: hashes.podTemplate,
    [labels.templateHash]: hashes.blueprint,
  }
  const own = podTemplate.metadata?.annotations
  const evictable = options.markEvictable && own?.[annotations.safeToEvict] === undefined
  const podAnnotations = evictable ? { ...own, [annotations.safeToEvict]: 'true' } : own
  return {
    apiVersion: Sandboxes.apiVersion as 'agents.x-k8s.io/v1beta1',
    kind: 'Sandbox',
    metadata: {
      generateName: `${pool.metadata.name}-`,
      ...(pool.metadata.namespace !== undefined && { namespace: pool.metadata.namespace }),
      labels: { ...shared, [labels.launchType]: 'warm', [labels.createdBy]: 'controller' },
      annotations: { [annotations.templateRef]: template.metadata.name },
      ownerReferences: [ownerReferenceTo(pool, SandboxWarmPools)],
    },
    spec: {
      podTemplate: {
        metadata: {
          labels: { ...podTemplate.metadata?.labels, ...shared },
          ...(podAnnotations && { annotations: podAnnotations }),
        },
        spec: withSecureDefaults(template, podTemplate.spec),
      },
      ...(volumeClaimTemplates && { volumeClaimTemplates }),
      ...(service !== undefined && { service }),
    },
  }
}
