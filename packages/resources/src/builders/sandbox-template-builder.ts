import type { SandboxPodTemplate, VolumeClaimTemplate } from '../agent-sandbox/common.js'
import {
  type SandboxTemplate,
  type SandboxTemplateSpec,
  sandboxTemplateSchema,
  type TemplateNetworkPolicy,
} from '../agent-sandbox/v1beta1.js'
import type { ResourceRequirements } from '../generated/core-types.js'
import { type BuildIssue, ObjectBuilder } from './object-builder.js'
import {
  podTemplateIssues,
  resourceRequirements,
  type SimpleResources,
  volumeClaim,
  withContainer,
  withPodSpec,
} from './pod-template.js'

/** Builds a SandboxTemplate. `image` or `podTemplate` is needed. */
export class SandboxTemplateBuilder extends ObjectBuilder<SandboxTemplate> {
  #spec: SandboxTemplateSpec = { podTemplate: { spec: { containers: [] } } }

  constructor(name: string) {
    super(name, sandboxTemplateSchema)
  }

  /** The whole template, in place of what was set before. */
  podTemplate(podTemplate: SandboxPodTemplate): this {
    return this.#change({ podTemplate })
  }

  /** Image of the container `sandbox`. */
  image(image: string): this {
    return this.#change({ podTemplate: withContainer(this.#spec.podTemplate, { image }) })
  }

  /** Limits and requests of the container `sandbox`; `{cpu, memory}` sets both alike. */
  resources(resources: ResourceRequirements | SimpleResources): this {
    const change = { resources: resourceRequirements(resources) }
    return this.#change({ podTemplate: withContainer(this.#spec.podTemplate, change) })
  }

  runtimeClass(runtimeClassName: string): this {
    return this.#change({ podTemplate: withPodSpec(this.#spec.podTemplate, { runtimeClassName }) })
  }

  /** A claim template, or the name and size of a volume. */
  addVolumeClaimTemplate(template: VolumeClaimTemplate): this
  addVolumeClaimTemplate(name: string, size: string, storageClassName?: string): this
  addVolumeClaimTemplate(first: VolumeClaimTemplate | string, size = '', storageClassName?: string): this {
    const template = typeof first === 'string' ? volumeClaim(first, size, storageClassName) : first
    return this.#change({ volumeClaimTemplates: [...(this.#spec.volumeClaimTemplates ?? []), template] })
  }

  networkPolicy(networkPolicy: TemplateNetworkPolicy): this {
    return this.#change({ networkPolicy })
  }

  networkPolicyManagement(networkPolicyManagement: NonNullable<SandboxTemplateSpec['networkPolicyManagement']>): this {
    return this.#change({ networkPolicyManagement })
  }

  /** Whether claims may set environment variables, and whether theirs win. */
  envVarsInjectionPolicy(envVarsInjectionPolicy: NonNullable<SandboxTemplateSpec['envVarsInjectionPolicy']>): this {
    return this.#change({ envVarsInjectionPolicy })
  }

  /** Whether claims may bring volumes, and whether theirs win. */
  volumeClaimTemplatesPolicy(policy: NonNullable<SandboxTemplateSpec['volumeClaimTemplatesPolicy']>): this {
    return this.#change({ volumeClaimTemplatesPolicy: policy })
  }

  protected override semanticIssues(): BuildIssue[] {
    return podTemplateIssues(this.#spec.podTemplate)
  }

  protected override content(): { apiVersion: string; kind: string; spec: SandboxTemplateSpec } {
    return { apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxTemplate', spec: this.#spec }
  }

  #change(change: Partial<SandboxTemplateSpec>): this {
    this.#spec = { ...this.#spec, ...change }
    return this
  }
}
