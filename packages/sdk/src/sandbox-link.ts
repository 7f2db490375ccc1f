import type { KubeClient } from '@corral/kube'
import type { CorralError, Fetch } from '@corral/protocol'
import { type Pod, Pods, type Sandbox, Sandboxes, type Stored } from '@corral/resources'
import { type ConnectionOptions, openTransport } from './connection/connection-options.js'
import type { SandboxTransport } from './connection/sandbox-transport.js'
import type { CorralRuntime } from './runtime/corral-runtime.js'
import { detectAfterStart, detectRuntime, requireRuntime } from './runtime/detect-runtime.js'
import { type OpenRuntime, openRuntime } from './runtime/open-runtime.js'
import { type PlainPods, readyForMs } from './runtime/plain-pods.js'
import { podExecRuntime } from './runtime/pod-exec-runtime.js'
import type { RuntimeKind, SandboxRuntime } from './runtime/sandbox-runtime.js'
import { unsupported } from './runtime/unsupported.js'
import { SandboxError, toSandboxError } from './sandbox-error.js'
import { podNameOf, requireRunning } from './sandbox-object.js'

export interface LinkOptions {
  readonly connection: ConnectionOptions
  /** How long a call tries to reach the server. */
  readonly connectMs: number
  /** What runs inside: only this is asked for, and another is an error. */
  readonly runtime?: RuntimeKind | undefined
  /** The container commands go to where only the kubelet's exec is left. */
  readonly container?: string | undefined
  /** For a daemon that asks for tokens. */
  readonly daemonToken?: ((sandbox: { name: string; namespace: string }) => string | Promise<string>) | undefined
  /** Shared by the handles of a client: which pods run nothing of their own. */
  readonly plainPods: PlainPods
  /** Headers of the trace a call belongs to. */
  readonly traceHeaders?: (() => Record<string, string>) | undefined
}

export interface OpenLink {
  readonly transport: SandboxTransport
  readonly podName: string
  readonly sandbox: Stored<Sandbox>
  /** What answers inside, asked for at the first call that needs it: a port is reached without. */
  runtime?: Promise<OpenRuntime> | undefined
  /** Why the pod behind it is no more, once that is known: then no call on it is tried again. */
  lost?: SandboxError | undefined
}

/**
 * The one line a handle keeps to its sandbox. Opened at the first call; forgotten when the pod under it is gone, so that
 * the next call finds the new one; told apart from a sandbox that is gone for good at every cut.
 */
export class SandboxLink {
  readonly #kube: () => Promise<KubeClient>
  readonly #ref: { name: string; namespace: string }
  readonly #options: LinkOptions
  #open: Promise<OpenLink> | undefined
  #known: Stored<Sandbox> | undefined
  #closed: 'detached' | 'deleted' | 'client' | undefined

  constructor(
    kube: () => Promise<KubeClient>,
    ref: { name: string; namespace: string },
    options: LinkOptions,
    known?: Stored<Sandbox>,
  ) {
    this.#kube = kube
    this.#ref = ref
    this.#options = options
    this.#known = known
  }

  /** What a daemon that asks for tokens wants to see. */
  get authorization(): (() => Promise<string>) | undefined {
    const { daemonToken } = this.#options
    return daemonToken && (async () => `Bearer ${await daemonToken(this.#ref)}`)
  }

  async runtime(signal?: AbortSignal): Promise<SandboxRuntime> {
    const open = await this.open(signal)
    if (!open.runtime) {
      const asking = this.#findRuntime(open, signal)
      open.runtime = asking
      // The next call asks again; the callers that wait for this one get the error.
      asking.catch(() => {
        if (open.runtime === asking) open.runtime = undefined
      })
    }
    try {
      return (await open.runtime).runtime
    } catch (error) {
      throw toSandboxError(error, signal)
    }
  }

  /** Our daemon; `Unsupported` where another runtime, or none, answers. */
  async corral(what: string, signal?: AbortSignal): Promise<CorralRuntime> {
    const runtime = await this.#afterStart(await this.runtime(signal), signal)
    if (runtime.kind !== 'corral') throw unsupported(runtime.kind, what)
    // The kind tells which one it is.
    return runtime as CorralRuntime
  }

  async open(signal?: AbortSignal): Promise<OpenLink> {
    if (this.#closed) throw this.#closedError()
    if (!this.#open) {
      const opening = this.#connect(signal)
      this.#open = opening
      // A connection that could not be opened is not kept; the callers that wait for it get the error.
      opening.catch(() => {
        if (this.#open === opening) this.#open = undefined
      })
    }
    try {
      return await this.#open
    } catch (error) {
      throw toSandboxError(error, signal)
    }
  }

  /**
   * Looks why a line broke, of the link that the call was on. Resolves when trying again makes sense; rejects when the
   * sandbox is not there any more.
   */
  async diagnose(failure: Error, of?: OpenLink): Promise<void> {
    // Without this a call of a handle that was detached tries again until its own time is over.
    if (this.#closed) throw this.#closedError(failure)
    const open = of ?? (await this.#open?.catch(() => undefined))
    // What one call has learned holds for all that were on the same link, which is closed: they could try for ever.
    if (open?.lost) throw new SandboxError(open.lost.code, open.lost.message, { ...open.lost, cause: failure })
    const kube = await this.#kube()
    const { name, namespace } = this.#ref
    let sandbox: Stored<Sandbox> | undefined
    let pod: Stored<Pod> | undefined
    try {
      sandbox = await kube.find(Sandboxes, this.#ref, { timeoutMs: 5_000 })
      pod = open && (await kube.find(Pods, { name: open.podName, namespace }, { timeoutMs: 5_000 }))
    } catch {
      return // The API does not answer either: only the line is known to be broken.
    }
    if (!sandbox || sandbox.metadata.deletionTimestamp || sandbox.spec.operatingMode === 'Suspended') {
      const isSuspended = sandbox?.spec.operatingMode === 'Suspended'
      throw this.#lose(open, isSuspended ? this.suspended(failure) : this.#deleted(failure))
    }
    if (!open) return
    const phase = pod?.status?.phase
    const hasEnded = phase === 'Failed' || phase === 'Succeeded'
    if (pod && !pod.metadata.deletionTimestamp && !hasEnded) return
    const message = `the pod of sandbox "${name}" ${hasEnded ? `has ended (${phase})` : 'is gone'}: ${failure.message}`
    const error = new SandboxError('SandboxFailed', message, {
      cause: failure,
      details: { sandbox: name, namespace, phase },
    })
    throw this.#lose(open, error)
  }

  /** What calls under way are told when the sandbox is suspended. */
  suspended(cause?: Error): SandboxError {
    const { name, namespace } = this.#ref
    return new SandboxError('SandboxDeleted', `sandbox "${name}" in "${namespace}" was suspended`, {
      cause,
      details: { sandbox: name, namespace },
      hint: 'Start it again with resume().',
    })
  }

  #deleted(cause: Error): SandboxError {
    const { name, namespace } = this.#ref
    const details = { sandbox: name, namespace }
    return new SandboxError('SandboxDeleted', `sandbox "${name}" in "${namespace}" was deleted`, { cause, details })
  }

  /** The link is of no more use. A newer one, to the next pod, stays. */
  #lose(open: OpenLink | undefined, reason: SandboxError): SandboxError {
    if (!open) return reason
    open.lost = reason
    void this.#open?.then(
      (current) => {
        if (current === open) this.reset()
      },
      () => {},
    )
    return reason
  }

  /** Forgets the link, whose pod has gone; the next call opens a new one. `reason` is what calls under way are told. */
  reset(reason?: SandboxError): void {
    const open = this.#open
    this.#open = undefined
    this.#known = undefined
    open?.then(
      (link) => {
        link.lost ??= reason ?? new SandboxError('SandboxFailed', `the pod of sandbox "${this.#ref.name}" is gone`)
        link.runtime?.then(
          ({ close }) => close?.(),
          () => {},
        )
        link.transport.close()
      },
      () => {},
    )
  }

  /** For good. Nothing inside ends. */
  close(why: 'detached' | 'deleted' | 'client' = 'detached'): void {
    this.#closed ??= why
    this.reset()
  }

  #closedError(cause?: Error): SandboxError {
    if (this.#closed === 'deleted')
      return new SandboxError('SandboxDeleted', `sandbox "${this.#ref.name}" was deleted by this program`, { cause })
    const what = this.#closed === 'client' ? 'client behind the handle' : 'handle'
    const done = this.#closed === 'client' ? 'closed' : 'detached'
    return new SandboxError('Aborted', `the ${what} of sandbox "${this.#ref.name}" was ${done}`, { cause })
  }

  async #connect(signal?: AbortSignal): Promise<OpenLink> {
    const kube = await this.#kube()
    // What was suspended when it was read may have been resumed since.
    const known = this.#known?.spec?.operatingMode === 'Suspended' ? undefined : this.#known
    const sandbox = known ?? (await kube.get(Sandboxes, this.#ref, signal ? { signal } : {}))
    this.#known = undefined
    requireRunning(sandbox)
    const podName = podNameOf(sandbox)
    const { connection, connectMs } = this.#options
    const transport = await openTransport(connection, kube, sandbox, podName, { signal, connectMs })
    return { transport, podName, sandbox }
  }

  async #findRuntime(open: OpenLink, signal?: AbortSignal): Promise<OpenRuntime> {
    const { transport, podName, sandbox } = open
    const kube = await this.#kube()
    const { connection, plainPods, container, traceHeaders, runtime } = this.#options
    const isPlain = connection.type === 'auto' && plainPods.has(sandbox)
    const wanted = connection.type === 'pod-exec' || (isPlain && !runtime) ? 'pod-exec' : runtime
    const onCut = (failure: CorralError) => this.diagnose(failure, open)
    const pod = { name: podName, namespace: this.#ref.namespace }
    const podExec = (): OpenRuntime => ({ runtime: podExecRuntime(kube, pod, { container, onCut }) })
    if (wanted === 'pod-exec') return podExec()
    const authorize = (fetch: Fetch): Fetch => this.#authorized(fetch)
    const asking = { signal, authorize, authorization: this.authorization, traceHeaders }
    const found = wanted ? await requireRuntime(wanted, transport, asking) : await detectRuntime(transport, asking)
    if (found !== 'refused' && found !== undefined) return openRuntime(found, transport, { authorize, onCut })
    await this.#requirePod(kube, signal)
    if (found === 'refused') plainPods.add(sandbox)
    if (connection.type === 'auto') return podExec()
    throw new SandboxError('ConnectionLost', `no runtime answers in sandbox "${this.#ref.name}"`, {
      hint: 'Connect with type "auto" or "pod-exec" where the image runs no daemon.',
    })
  }

  /** Nothing answered: because nothing listens, or because the sandbox went since it was read. */
  async #requirePod(kube: KubeClient, signal?: AbortSignal): Promise<void> {
    const sandbox = await kube.find(Sandboxes, this.#ref, signal ? { signal } : {})
    if (sandbox?.spec?.operatingMode === 'Suspended') {
      this.reset()
      requireRunning(sandbox)
    }
    try {
      await this.diagnose(new SandboxError('ConnectionLost', 'no runtime answers'))
    } catch (error) {
      const { code, details } = toSandboxError(error)
      // A pod that has ended by itself stays as it is.
      if (code !== 'SandboxFailed' || details.phase === 'Failed' || details.phase === 'Succeeded') throw error
      const { name, namespace } = this.#ref
      throw new SandboxError('SandboxNotReady', `the pod of sandbox "${name}" in "${namespace}" is being replaced`, {
        cause: error,
        details: { sandbox: name, namespace },
        hint: 'Nothing was sent: try again when the sandbox has its new pod.',
      })
    }
  }

  /**
   * Asks once more for a daemon where a call needs one and none answered before: a container without a readiness probe is
   * Ready before the program in it listens.
   */
  async #afterStart(runtime: SandboxRuntime, signal?: AbortSignal): Promise<SandboxRuntime> {
    const { connection, runtime: named, traceHeaders } = this.#options
    if (runtime.kind !== 'pod-exec' || connection.type !== 'auto' || named) return runtime
    const open = await this.open(signal)
    const authorize = (fetch: Fetch): Fetch => this.#authorized(fetch)
    const asking = { signal, authorize, authorization: this.authorization, traceHeaders }
    const found = await detectAfterStart(open.transport, { ...asking, readyForMs: readyForMs(open.sandbox) })
    if (!found) return runtime
    const onCut = (failure: CorralError) => this.diagnose(failure, open)
    open.runtime = openRuntime(found, open.transport, { authorize, onCut })
    return (await open.runtime).runtime
  }

  #authorized(fetch: Fetch): Fetch {
    const { daemonToken, traceHeaders } = this.#options
    if (!daemonToken && !traceHeaders) return fetch
    return async (url, init = {}) => {
      const headers = new Headers(init.headers)
      if (daemonToken) headers.set('authorization', `Bearer ${await daemonToken(this.#ref)}`)
      for (const [name, value] of Object.entries(traceHeaders?.() ?? {})) headers.set(name, value)
      return fetch(url, { ...init, headers })
    }
  }
}
