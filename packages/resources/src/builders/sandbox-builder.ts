import type { SandboxPodTemplate, VolumeClaimTemplate } from '../agent-sandbox/common.js'
import { type Sandbox, type SandboxSpec, sandboxSchema } from '../agent-sandbox/v1beta1.js'
import type { ResourceRequirements } from '../generated/core-types.js'
import { formatTime } from '../time.js'
import { type BuildIssue, ObjectBuilder } from './object-builder.js'
import {
  podTemplateIssues,
  resourceRequirements,
  type SimpleResources,
  volumeClaim,
  withContainer,
  withPodSpec,
} from './pod-template.js'

/** Builds a Sandbox. `image` or `podTemplate` is needed, the rest has Kubernetes' defaults. */
export class SandboxBuilder extends ObjectBuilder<Sandbox> {
  #spec: SandboxSpec = { podTemplate: { spec: { containers: [] } } }

  constructor(name: string) {
    super(name, sandboxSchema)
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

  /** The whole template, in place of what was set before. */
  podTemplate(podTemplate: SandboxPodTemplate): this {
    return this.#change({ podTemplate })
  }

  /** A claim template, or the name and size of a volume. */
  addVolumeClaimTemplate(template: VolumeClaimTemplate): this
  addVolumeClaimTemplate(name: string, size: string, storageClassName?: string): this
  addVolumeClaimTemplate(first: VolumeClaimTemplate | string, size = '', storageClassName?: string): this {
    const template = typeof first === 'string' ? volumeClaim(first, size, storageClassName) : first
    return this.#change({ volumeClaimTemplates: [...(this.#spec.volumeClaimTemplates ?? []), template] })
  }

  /** When the sandbox ends by itself. */
  shutdownTime(time: Date | string): this {
    return this.#change({ shutdownTime: typeof time === 'string' ? time : formatTime(time) })
  }

  shutdownPolicy(shutdownPolicy: NonNullable<SandboxSpec['shutdownPolicy']>): this {
    return this.#change({ shutdownPolicy })
  }

  operatingMode(operatingMode: NonNullable<SandboxSpec['operatingMode']>): this {
    return this.#change({ operatingMode })
  }

  /** v1alpha1's way to say running (1) or suspended (0). */
  replicas(replicas: 0 | 1): this {
    return this.operatingMode(replicas === 0 ? 'Suspended' : 'Running')
  }

  /** Whether a Service is made for the sandbox. */
  service(service: boolean): this {
    return this.#change({ service })
  }

  /** Labels that say whose sandbox this is. */
  taskContext({ projectId, taskId }: { projectId?: string; taskId?: string }): this {
    return this.labels({
      ...(projectId === undefined ? {} : { 'corral.dev/project-id': projectId }),
      ...(taskId === undefined ? {} : { 'corral.dev/task-id': taskId }),
    })
  }

  protected override semanticIssues(): BuildIssue[] {
    return podTemplateIssues(this.#spec.podTemplate)
  }

  protected override content(): { apiVersion: string; kind: string; spec: SandboxSpec } {
    return { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', spec: this.#spec }
  }

  #change(change: Partial<SandboxSpec>): this {
    this.#spec = { ...this.#spec, ...change }
    return this
  }
}
