import type { KubeClient } from '@corral/kube'
import { type CorralError, DaemonClient, daemonPort, type Fetch } from '@corral/protocol'
import { Pods, type Sandbox, Sandboxes, type Stored } from '@corral/resources'
import { type ConnectionOptions, openTransport } from './connection/connection-options.js'
import type { SandboxTransport } from './connection/sandbox-transport.js'
import { type CorralRuntime, corralRuntime } from './runtime/corral-runtime.js'
import { type Detected, detectRuntime, requireRuntime } from './runtime/detect-runtime.js'
import { legacyRuntime } from './runtime/legacy-runtime.js'
import type { PlainPods } from './runtime/plain-pods.js'
import { podExecRuntime } from './runtime/pod-exec-runtime.js'
import type { RuntimeKind, SandboxRuntime } from './runtime/sandbox-runtime.js'
import { unsupported } from './runtime/unsupported.js'
import { SandboxError, toSandboxError } from './sandbox-error.js'
import { podNameOf, requireRunning } from './sandbox-object.js'

export interface LinkOptions {
  readonly connection: ConnectionOptions
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

interface OpenLink {
  readonly transport: SandboxTransport
  readonly runtime: SandboxRuntime
  readonly podName: string
  readonly close: () => void
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
  #isClosed = false

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
    return (await this.open(signal)).runtime
  }

  /** Our daemon; `Unsupported` where another runtime, or none, answers. */
  async corral(what: string, signal?: AbortSignal): Promise<CorralRuntime> {
    const runtime = await this.runtime(signal)
    if (runtime.kind !== 'corral') throw unsupported(runtime.kind, what)
    // The kind tells which one it is.
    return runtime as CorralRuntime
  }

  async open(signal?: AbortSignal): Promise<OpenLink> {
    if (this.#isClosed) throw this.#detached()
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

  /** Looks why a line broke. Resolves when trying again makes sense; rejects when the sandbox is not there any more. */
  async diagnose(failure: Error): Promise<void> {
    // Without this a call of a handle that was detached tries again until its own time is over.
    if (this.#isClosed) throw this.#detached(failure)
    const open = await this.#open?.catch(() => undefined)
    const kube = await this.#kube()
    const { name, namespace } = this.#ref
    const details = { sandbox: name, namespace }
    let sandbox: Stored<Sandbox> | undefined
    try {
      sandbox = await kube.find(Sandboxes, this.#ref, { timeoutMs: 5_000 })
      const pod = open && (await kube.find(Pods, { name: open.podName, namespace }, { timeoutMs: 5_000 }))
      if (sandbox && !sandbox.metadata.deletionTimestamp && sandbox.spec.operatingMode !== 'Suspended' && open) {
        const phase = pod?.status?.phase
        if (pod && !pod.metadata.deletionTimestamp && phase !== 'Failed' && phase !== 'Succeeded') return
        this.reset()
        const what = phase === 'Failed' || phase === 'Succeeded' ? `has ended (${phase})` : 'is gone'
        const message = `the pod of sandbox "${name}" ${what}: ${failure.message}`
        throw new SandboxError('SandboxFailed', message, { cause: failure, details: { ...details, phase } })
      }
    } catch (error) {
      if (error instanceof SandboxError) throw error
      return // The API does not answer either: only the line is known to be broken.
    }
    this.reset()
    if (sandbox && !sandbox.metadata.deletionTimestamp && !open) return
    const why = sandbox?.spec.operatingMode === 'Suspended' ? 'was suspended' : 'was deleted'
    throw new SandboxError('SandboxDeleted', `sandbox "${name}" in "${namespace}" ${why}`, { cause: failure, details })
  }

  /** Forgets the line; the next call opens a new one. */
  reset(): void {
    const open = this.#open
    this.#open = undefined
    this.#known = undefined
    open?.then(
      ({ close }) => close(),
      () => {},
    )
  }

  /** For good. Nothing inside ends. */
  close(): void {
    this.#isClosed = true
    this.reset()
  }

  #detached(cause?: Error): SandboxError {
    return new SandboxError('Aborted', `the handle of sandbox "${this.#ref.name}" was detached`, { cause })
  }

  async #connect(signal?: AbortSignal): Promise<OpenLink> {
    const kube = await this.#kube()
    const { connection } = this.#options
    const sandbox = this.#known ?? (await kube.get(Sandboxes, this.#ref, signal ? { signal } : {}))
    this.#known = undefined
    requireRunning(sandbox)
    const podName = podNameOf(sandbox)
    const transport = await openTransport(connection, kube, sandbox, podName, signal)
    const onCut = (failure: CorralError) => this.diagnose(failure)
    const authorize = (fetch: Fetch): Fetch => this.#authorized(fetch)
    const pod = { name: podName, namespace: this.#ref.namespace }
    const podExec = () => podExecRuntime(kube, pod, { container: this.#options.container, onCut })
    const { plainPods } = this.#options
    const known = connection.type === 'auto' && plainPods.has(sandbox) ? ('pod-exec' as const) : undefined
    const wanted = connection.type === 'pod-exec' ? 'pod-exec' : (this.#options.runtime ?? known)
    const close = () => transport.close()
    const base = { transport, podName, close }
    if (wanted === 'pod-exec') return { ...base, runtime: podExec() }
    const { authorization } = this
    const asking = { signal, authorize, authorization, traceHeaders: this.#options.traceHeaders }
    const answer: Detected | 'refused' | undefined = wanted
      ? await requireRuntime(wanted, transport, asking)
      : await detectRuntime(transport, asking)
    if (answer === 'refused') plainPods.add(sandbox)
    const found = answer === 'refused' ? undefined : answer
    const fetch = authorize(transport.fetchTo(found?.kind === 'sandboxd' ? 8080 : daemonPort))
    switch (found?.kind) {
      case 'corral': {
        const { lines } = found
        return {
          ...base,
          runtime: corralRuntime(new DaemonClient({ fetch }), found.boot, onCut, lines),
          close: () => {
            lines?.close()
            transport.close()
          },
        }
      }
      case 'legacy':
        return { ...base, runtime: legacyRuntime(fetch, onCut) }
      case 'sandboxd': {
        const { dial } = transport
        if (!dial)
          throw new SandboxError('Unsupported', `gRPC does not pass through a connection of type "${transport.kind}"`)
        // Loaded when a sandbox needs it: most do not.
        const { sandboxdRuntime } = await import('./runtime/sandboxd-runtime.js')
        const runtime = sandboxdRuntime(fetch, () => dial(9090), onCut)
        return {
          ...base,
          runtime,
          close: () => {
            runtime.close()
            transport.close()
          },
        }
      }
      default:
        if (connection.type === 'auto') return { ...base, runtime: podExec() }
        throw new SandboxError('ConnectionLost', `no runtime answers in sandbox "${this.#ref.name}"`, {
          hint: 'Connect with type "auto" or "pod-exec" where the image runs no daemon.',
        })
    }
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
