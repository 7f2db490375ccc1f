import type { KubeClient, ObjectRef } from '@corral/kube'
import { type Sandbox, Sandboxes, type Stored, type WatchEvent } from '@corral/resources'
import { type CreateSandboxRequest, createSandbox } from './create-sandbox.js'
import { type Readiness, readinessOf } from './readiness.js'
import { type ClusterScope, type InNamespace, ResourceCollection, type SelectOptions } from './resource-collection.js'
import { connectPod, type SandboxConnection } from './sandbox-connection.js'
import { SandboxError, translated } from './sandbox-error.js'
import {
  type ExecBufferedOptions,
  type ExecProcess,
  type ExecResult,
  type ExecStreamOptions,
  execBuffered,
  execStream,
} from './sandbox-exec.js'
import { type OwnedSandbox, SandboxHandle } from './sandbox-handle.js'
import { type Verdict, type WaitOptions, waitFor } from './wait-for.js'

/** Where the controller notes a pod that is not named like its sandbox: one adopted from a pool. */
const podNameAnnotation = 'agents.x-k8s.io/pod-name'

/** A sandbox by name, or a handle on one. */
export interface SandboxRef {
  readonly name: string
  readonly namespace?: string | undefined
}

/** Sandboxes: made and found as handles, commands and connections into them, and the plain objects beneath. */
export class SandboxCollection {
  /** The objects themselves. */
  readonly objects: ResourceCollection<Sandbox>
  readonly #scope: ClusterScope

  constructor(scope: ClusterScope) {
    this.#scope = scope
    this.objects = new ResourceCollection(Sandboxes, scope)
  }

  /** A sandbox of our own, ready for use. When it fails to become ready nothing of it is left. */
  create(request: CreateSandboxRequest & WaitOptions & InNamespace): Promise<OwnedSandbox> {
    return createSandbox(this, this.#scope, request)
  }

  /** A handle on a sandbox that exists; `NotFound` where it does not. */
  async get(name: string, options: InNamespace & { signal?: AbortSignal } = {}): Promise<SandboxHandle> {
    const { metadata } = await this.objects.get(name, options)
    return new SandboxHandle(this, { name, namespace: metadata.namespace ?? (await this.#scope.namespace()) })
  }

  list(options: SelectOptions = {}): AsyncIterable<Stored<Sandbox>> {
    return this.objects.list(options)
  }

  watch(options: SelectOptions = {}): AsyncIterable<WatchEvent<Stored<Sandbox>>> {
    return this.objects.watch(options)
  }

  delete(name: string, options: InNamespace & { signal?: AbortSignal } = {}): Promise<void> {
    return this.objects.delete(name, options)
  }

  /** Resolves when the sandbox is ready; fails at once when it cannot become so any more. */
  async waitForReady(name: string, options: WaitOptions & InNamespace = {}): Promise<Stored<Sandbox>> {
    const kube = await this.#kube()
    return waitFor(kube, Sandboxes, await this.#ref({ name, ...options }), readyVerdict('Sandbox', name), options)
  }

  /** Stops the pod and keeps the volumes; resolves when it has stopped. */
  async pause(name: string, options: WaitOptions & InNamespace = {}): Promise<void> {
    await this.#setMode(name, 'Suspended', options)
    const isPaused = ({ status }: Stored<Sandbox>): Verdict => {
      const suspended = status?.conditions?.find((condition) => condition.type === 'Suspended')
      if (suspended?.status === 'True') return { done: true }
      return { done: false, why: suspended ? `${suspended.reason}: ${suspended.message}` : 'it still runs' }
    }
    await waitFor(await this.#kube(), Sandboxes, await this.#ref({ name, ...options }), isPaused, options)
  }

  /** Starts a paused sandbox; resolves when it is ready again. */
  async resume(name: string, options: WaitOptions & InNamespace = {}): Promise<void> {
    const { metadata } = await this.#setMode(name, 'Running', options)
    const judge = readyVerdict('Sandbox', name)
    const isResumed = (sandbox: Stored<Sandbox>): Verdict => {
      const ready = sandbox.status?.conditions?.find((condition) => condition.type === 'Ready')
      // What the conditions say about the time before the change is no answer yet.
      if ((ready?.observedGeneration ?? 0) < (metadata.generation ?? 0)) return { done: false, why: 'it is suspended' }
      return judge(sandbox)
    }
    await waitFor(await this.#kube(), Sandboxes, await this.#ref({ name, ...options }), isResumed, options)
  }

  /** Runs a command to its end and returns what it wrote. */
  async exec(sandbox: SandboxRef, command: readonly string[], options: ExecBufferedOptions = {}): Promise<ExecResult> {
    return execBuffered(await this.#kube(), await this.podOf(sandbox, options), command, options)
  }

  /** Runs a command and streams its output. */
  async execStream(
    sandbox: SandboxRef,
    command: readonly string[],
    options: ExecStreamOptions = {},
  ): Promise<ExecProcess> {
    return execStream(await this.#kube(), await this.podOf(sandbox, options), command, options)
  }

  /** A line to the daemon inside, which the caller closes. */
  async connect(sandbox: SandboxRef, options: { signal?: AbortSignal | undefined } = {}): Promise<SandboxConnection> {
    return connectPod(await this.#kube(), await this.podOf(sandbox, options))
  }

  /** The pod behind a sandbox. */
  async podOf(sandbox: SandboxRef, options: { signal?: AbortSignal | undefined } = {}): Promise<Required<ObjectRef>> {
    const { signal } = options
    const ref = await this.#ref(sandbox)
    const object = await this.objects.get(ref.name, { namespace: ref.namespace, ...(signal ? { signal } : {}) })
    return { name: object.metadata.annotations?.[podNameAnnotation] || ref.name, namespace: ref.namespace }
  }

  #setMode(name: string, operatingMode: 'Running' | 'Suspended', options: WaitOptions & InNamespace) {
    const { namespace, signal } = options
    return this.objects.patch(name, { spec: { operatingMode } }, { namespace, ...(signal ? { signal } : {}) })
  }

  #kube(): Promise<KubeClient> {
    return translated(() => this.#scope.kube())
  }

  async #ref(sandbox: SandboxRef): Promise<{ name: string; namespace: string }> {
    return { name: sandbox.name, namespace: sandbox.namespace ?? (await this.#scope.namespace()) }
  }
}

/** Judges an object by its conditions. */
export function readyVerdict(
  kind: string,
  name: string,
): (object: { status?: { conditions?: Parameters<typeof readinessOf>[0] } }) => Verdict {
  return (object) => {
    const readiness: Readiness = readinessOf(object.status?.conditions)
    if (readiness.state === 'ready') return { done: true }
    const why = `${readiness.reason}: ${readiness.message}`
    if (readiness.state === 'waiting') return { done: false, why }
    const details = { reason: readiness.reason }
    return { done: false, failure: new SandboxError('SandboxFailed', `${kind} "${name}" failed: ${why}`, { details }) }
  }
}
