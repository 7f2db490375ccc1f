import type { SandboxPodTemplate, VolumeClaimTemplate } from '../agent-sandbox/common.js'
import type { Container, PodSpec, ResourceRequirements } from '../generated/core-types.js'
import type { BuildIssue } from './object-builder.js'

/** Name of the container that a builder's `image` and `resources` describe. */
export const SANDBOX_CONTAINER = 'sandbox'

/** The template with a change to its `sandbox` container, which is added when it is not there. */
export function withContainer(template: SandboxPodTemplate, change: Partial<Container>): SandboxPodTemplate {
  const { containers } = template.spec
  const exists = containers.some(({ name }) => name === SANDBOX_CONTAINER)
  const all = exists ? containers : [{ name: SANDBOX_CONTAINER }, ...containers]
  return withPodSpec(template, {
    containers: all.map((container) =>
      container.name === SANDBOX_CONTAINER ? { ...container, ...change } : container,
    ),
  })
}

export function withPodSpec(template: SandboxPodTemplate, change: Partial<PodSpec>): SandboxPodTemplate {
  return { ...template, spec: { ...template.spec, ...change } }
}

/** Limits double as requests: a sandbox gets what it may use. */
export function resourceRequirements(resources: ResourceRequirements | SimpleResources): ResourceRequirements {
  if (!('cpu' in resources || 'memory' in resources)) return resources as ResourceRequirements
  const amounts = resources as Record<string, string | number>
  return { limits: { ...amounts }, requests: { ...amounts } }
}

/** `{ cpu: '500m', memory: '1Gi' }` in place of limits and requests. */
export interface SimpleResources {
  cpu?: string | number
  memory?: string | number
}

/** A claim template for a volume of the given size, mounted by one pod at a time. */
export function volumeClaim(name: string, size: string, storageClassName?: string): VolumeClaimTemplate {
  return {
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: size } },
      ...(storageClassName === undefined ? {} : { storageClassName }),
    },
  }
}

/** A pod needs a container, and each container an image: schemas let both pass. */
export function podTemplateIssues({ spec: { containers } }: SandboxPodTemplate): BuildIssue[] {
  const path = 'spec.podTemplate.spec.containers'
  if (!Array.isArray(containers)) return []
  if (containers.length === 0) return [{ field: path, message: 'Required value' }]
  return containers.flatMap(({ image }, i) =>
    image ? [] : [{ field: `${path}[${i}].image`, message: 'Required value' }],
  )
}
