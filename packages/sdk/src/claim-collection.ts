import { type SandboxClaim, SandboxClaims, type Stored } from '@corral/resources'
import { readyVerdict } from './ready-verdict.js'
import { type ClusterScope, type InNamespace, ResourceCollection } from './resource-collection.js'
import { translated } from './sandbox-error.js'
import { type WaitOptions, waitFor } from './wait-for.js'

/** SandboxClaims, with the wait for their sandbox. */
export class ClaimCollection extends ResourceCollection<SandboxClaim> {
  readonly #scope: ClusterScope

  constructor(scope: ClusterScope) {
    super(SandboxClaims, scope)
    this.#scope = scope
  }

  /** Resolves when the claim is ready and names its sandbox; fails at once when it cannot become so any more. */
  async waitForReady(name: string, options: WaitOptions & InNamespace = {}): Promise<Stored<SandboxClaim>> {
    const kube = await translated(() => this.#scope.kube(), options.signal)
    const namespace = options.namespace ?? (await this.#scope.namespace())
    const judge = readyVerdict('SandboxClaim', name)
    return waitFor(
      kube,
      SandboxClaims,
      { name, namespace },
      (claim) => {
        const verdict = judge(claim)
        if (!verdict.done || claim.status?.sandbox?.name) return verdict
        return { done: false, why: 'the claim names no sandbox yet' }
      },
      options,
    )
  }
}
