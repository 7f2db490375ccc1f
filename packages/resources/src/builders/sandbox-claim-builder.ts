import type { PodMetadata, VolumeClaimTemplate } from '../agent-sandbox/common.js'
import { SHADOW_POOL_PREFIX } from '../agent-sandbox/keys.js'
import {
  type ClaimLifecycle,
  type SandboxClaim,
  type SandboxClaimSpec,
  sandboxClaimSchema,
} from '../agent-sandbox/v1beta1.js'
import { formatTime } from '../time.js'
import { ObjectBuilder } from './object-builder.js'
import { volumeClaim } from './pod-template.js'

/** Builds a SandboxClaim. `warmPool` or `templateRef` is needed. */
export class SandboxClaimBuilder extends ObjectBuilder<SandboxClaim> {
  #spec: Partial<SandboxClaimSpec> = {}

  constructor(name: string) {
    super(name, sandboxClaimSchema)
  }

  /** The pool the sandbox comes from. */
  warmPool(name: string): this {
    return this.#change({ warmPoolRef: { name } })
  }

  /** Names a template in v1alpha1's manner: the claim refers to the template's shadow pool, which must exist. */
  templateRef(name: string): this {
    return this.warmPool(SHADOW_POOL_PREFIX + name)
  }

  lifecycle(lifecycle: Omit<ClaimLifecycle, 'shutdownTime'> & { shutdownTime?: string | Date }): this {
    const { shutdownTime, ...rest } = lifecycle
    if (shutdownTime === undefined) return this.#change({ lifecycle: rest })
    const time = typeof shutdownTime === 'string' ? shutdownTime : formatTime(shutdownTime)
    return this.#change({ lifecycle: { ...rest, shutdownTime: time } })
  }

  /** Adds a variable; claims with variables get a fresh sandbox, never a warm one. */
  env(name: string, value: string, containerName?: string): this {
    const variable = { name, value, ...(containerName === undefined ? {} : { containerName }) }
    return this.#change({ env: [...(this.#spec.env ?? []), variable] })
  }

  additionalPodMetadata(metadata: PodMetadata): this {
    return this.#change({ additionalPodMetadata: metadata })
  }

  /** A claim template, or the name and size of a volume. */
  addVolumeClaimTemplate(template: VolumeClaimTemplate): this
  addVolumeClaimTemplate(name: string, size: string, storageClassName?: string): this
  addVolumeClaimTemplate(first: VolumeClaimTemplate | string, size = '', storageClassName?: string): this {
    const template = typeof first === 'string' ? volumeClaim(first, size, storageClassName) : first
    return this.#change({ volumeClaimTemplates: [...(this.#spec.volumeClaimTemplates ?? []), template] })
  }

  protected override content(): { apiVersion: string; kind: string; spec: Partial<SandboxClaimSpec> } {
    return { apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxClaim', spec: this.#spec }
  }

  #change(change: Partial<SandboxClaimSpec>): this {
    this.#spec = { ...this.#spec, ...change }
    return this
  }
}
