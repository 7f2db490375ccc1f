import { createInformer, type Informer, type KubeClient } from '@corral/kube'
import { type SandboxClaim, SandboxClaims, type Stored } from '@corral/resources'

/** Tells when claims become Ready, from one watch for all of them. */
export class ClaimWatch {
  readonly #informer: Informer<SandboxClaim>
  readonly #waiting = new Map<string, (sandbox: string) => void>()
  readonly #ready = new Map<string, string>()
  #changedAtMs = 0

  constructor(client: KubeClient, namespace: string) {
    this.#informer = createInformer({ client, kind: SandboxClaims, namespace })
    const see = (claim: Stored<SandboxClaim>): void => this.#see(claim)
    this.#informer.subscribe({ add: see, update: see })
  }

  get synced(): Promise<void> {
    return this.#informer.hasSynced
  }

  /** The name of the claim's sandbox, which is its Pod's name too, once it is Ready. */
  ready(name: string): Promise<string> {
    const known = this.#ready.get(name)
    if (known !== undefined) return Promise.resolve(known)
    return new Promise((resolve) => this.#waiting.set(name, resolve))
  }

  stop(): Promise<void> {
    return this.#informer.stop()
  }

  /** Resolves once no claim has changed for this long. */
  async quiet(forMs: number): Promise<void> {
    for (let leftMs = forMs; leftMs > 0; leftMs = this.#changedAtMs + forMs - performance.now())
      await new Promise((resolve) => setTimeout(resolve, leftMs))
  }

  #see({ metadata: { name }, status }: Stored<SandboxClaim>): void {
    this.#changedAtMs = performance.now()
    const isReady = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True')
    const sandbox = status?.sandbox?.name
    if (!isReady || !sandbox || this.#ready.has(name)) return
    this.#ready.set(name, sandbox)
    this.#waiting.get(name)?.(sandbox)
    this.#waiting.delete(name)
  }
}
