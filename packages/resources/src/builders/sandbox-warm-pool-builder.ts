import { type SandboxWarmPool, type SandboxWarmPoolSpec, sandboxWarmPoolSchema } from '../agent-sandbox/v1beta1.js'
import { ObjectBuilder } from './object-builder.js'

type UpdateStrategy = NonNullable<NonNullable<SandboxWarmPoolSpec['updateStrategy']>['type']>

/** Builds a SandboxWarmPool. `sandboxTemplateRef` is needed. */
export class SandboxWarmPoolBuilder extends ObjectBuilder<SandboxWarmPool> {
  #spec: Partial<SandboxWarmPoolSpec> = {}

  constructor(name: string) {
    super(name, sandboxWarmPoolSchema)
  }

  replicas(replicas: number): this {
    return this.#change({ replicas })
  }

  /** The template its sandboxes are made from. */
  sandboxTemplateRef(name: string): this {
    return this.#change({ sandboxTemplateRef: { name } })
  }

  updateStrategy(type: UpdateStrategy): this {
    return this.#change({ updateStrategy: { type } })
  }

  protected override content(): { apiVersion: string; kind: string; spec: Partial<SandboxWarmPoolSpec> } {
    return { apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxWarmPool', spec: this.#spec }
  }

  #change(change: Partial<SandboxWarmPoolSpec>): this {
    this.#spec = { ...this.#spec, ...change }
    return this
  }
}
