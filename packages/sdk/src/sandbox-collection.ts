import { randomUUID } from 'node:crypto'
import type { KubeClient, ObjectRef } from '@corral/kube'
import {
  isConflict,
  type KubeObject,
  type ResourceKind,
  type Sandbox,
  SandboxClaims,
  Sandboxes,
  type Stored,
  type WatchEvent,
} from '@corral/resources'
import { waitForClaim } from './claimed-sandbox.js'
import type { ClientLinks } from './client-links.js'
import { openTransport } from './connection/connection-options.js'
import { bind, type CreateSandboxRequest, createSandbox, isGivenLate } from './create-sandbox.js'
import type { ExitCleanup } from './exit-cleanup.js'
import { outlasting } from './outlasting.js'
import { readyVerdict } from './ready-verdict.js'
import { type ClusterScope, type InNamespace, ResourceCollection, type SelectOptions } from './resource-collection.js'
import { connectThrough, type SandboxConnection } from './sandbox-connection.js'
import { SandboxError, toSandboxError, translated } from './sandbox-error.js'
import {
  type ExecBufferedOptions,
  type ExecProcess,
  type ExecResult,
  type ExecStreamOptions,
  execBuffered,
  execStream,
} from './sandbox-exec.js'
import { type HandleParts, OwnedSandbox, SandboxHandle } from './sandbox-handle.js'
import { type LinkOptions, SandboxLink } from './sandbox-link.js'
import { podNameOf, requireRunning, type SandboxRef } from './sandbox-object.js'
import type { Telemetry } from './telemetry.js'
import { timeLimit } from './time-limit.js'
import { type Verdict, type WaitOptions, waitFor } from './wait-for.js'

export interface CollectionOptions {
  readonly link: LinkOptions
  readonly links: ClientLinks
  readonly telemetry: Telemetry
  readonly cleanup?: ExitCleanup | undefined
}

export interface CreatorOptions {
  /**
   * How long the program that makes the sandbox may take to deliver its variables, files and repository: 60 s without it. One
   * that takes longer is taken for dead, and a caller that waits delivers instead.
   */
  readonly creatorTimeoutMs?: number | undefined
}

/** Annotation of a claim or Sandbox whose creator has not delivered its variables, files and repository yet. */
const deliveryPendingKey = 'corral.dev/delivery-pending'
const defaultCreatorTimeoutMs = 60_000

/** Sandboxes: made and found as handles, commands and connections into them, and the plain objects beneath. */
export class SandboxCollection {
  /** The objects themselves. */
  readonly objects: ResourceCollection<Sandbox>
  readonly #scope: ClusterScope
  readonly #options: CollectionOptions

  constructor(scope: ClusterScope, options: CollectionOptions) {
    this.#scope = scope
    this.#options = options
    this.objects = new ResourceCollection(Sandboxes, scope)
  }

  /** A sandbox of our own, ready for use. When it fails to become ready nothing of it is left. */
  async create(request: CreateSandboxRequest & WaitOptions & InNamespace): Promise<OwnedSandbox> {
    const { telemetry } = this.#options
    if (!request) throw new SandboxError('Invalid', 'a sandbox needs a pool, a template or a podTemplate')
    await this.#kube()
    const attributes = { 'sandbox.pool': request.pool ?? '', 'sandbox.template': request.template ?? '' }
    const usesAddresses = !['auto', 'port-forward', 'pod-exec'].includes(this.#options.link.connection.type)
    const owned: SandboxCollection['owned'] = (...made) => this.owned(...made)
    return telemetry.span('sandbox.create', attributes, () =>
      createSandbox({ owned, usesAddresses }, this.#scope, request, () => telemetry.headers()),
    )
  }

  /** A handle on a sandbox that exists, by its own name or that of its claim; `NotFound` where there is neither. */
  async get(name: string, options: InNamespace & { signal?: AbortSignal } = {}): Promise<SandboxHandle> {
    const found = await this.objects.find(name, options)
    if (found) return this.borrowed(found)
    const { namespace } = await this.#ref({ name, ...options })
    const kube = await this.#kube()
    const call = options.signal ? { signal: options.signal } : {}
    const claim = await translated(() => kube.find(SandboxClaims, { name, namespace }, call), options.signal)
    const sandbox = claim?.status?.sandbox?.name
    if (!claim) throw new SandboxError('NotFound', `there is no sandbox and no claim "${name}" in "${namespace}"`)
    if (!sandbox) throw new SandboxError('SandboxNotReady', `claim "${name}" in "${namespace}" has no sandbox yet`)
    return this.borrowed(await this.objects.get(sandbox, { ...options, namespace }), name)
  }

  /**
   * The sandbox of the claim with this name, made where there is none. Safe to repeat and to call from many places at
   * once: all get the same one, with what it was to be given. A claim on another pool is refused with `Conflict` and left alone. The handle does
   * not own the sandbox.
   */
  async getOrCreate(
    request: CreateSandboxRequest & { name: string } & CreatorOptions & WaitOptions & InNamespace,
  ): Promise<SandboxHandle> {
    const { name, signal } = request
    timeLimit(request.creatorTimeoutMs)
    const kube = await this.#kube()
    const ref = await this.#ref(request)
    const kind: ResourceKind = request.podTemplate ? Sandboxes : SandboxClaims
    const existing = await translated(() => kube.find(kind, ref, signal ? { signal } : {}), signal)
    if (!existing) {
      try {
        const isLate = isGivenLate(request)
        const mark = isLate ? { annotations: { ...request.annotations, [deliveryPendingKey]: 'true' } } : {}
        const made = await this.create({ ...request, ...mark })
        made.detach()
        if (isLate) await this.#unmark(kind, ref, signal)
        return await this.get(request.podTemplate ? name : made.name, {
          namespace: ref.namespace,
          ...(signal ? { signal } : {}),
        })
      } catch (error) {
        if (!(error instanceof SandboxError && error.code === 'AlreadyExists')) throw error
      }
    }
    if (request.podTemplate) {
      const ready = await this.waitForReady(name, { ...request, namespace: ref.namespace })
      return this.#delivered(this.borrowed(ready), kind, ref, request)
    }
    const claim = await translated(() => kube.get(SandboxClaims, ref, signal ? { signal } : {}), signal)
    const pool = claim.spec.warmPoolRef?.name
    if (request.pool !== undefined && pool !== request.pool) {
      throw new SandboxError('Conflict', `claim "${name}" is on pool "${pool}", not on "${request.pool}"`, {
        hint: `Name pool "${pool}", or another claim.`,
      })
    }
    const { name: sandbox } = await waitForClaim(kube, ref, request, claim)
    const object = await this.objects.get(sandbox, { namespace: ref.namespace, ...(signal ? { signal } : {}) })
    return this.#delivered(this.borrowed(object, name), kind, ref, request)
  }

  /**
   * The handle, once the creator of its sandbox has delivered what that was to have. Of several callers that find the
   * creator dead one delivers, and the others wait for that one.
   */
  async #delivered(
    handle: SandboxHandle,
    kind: ResourceKind,
    ref: { name: string; namespace: string },
    request: CreateSandboxRequest & CreatorOptions & WaitOptions,
  ): Promise<SandboxHandle> {
    const { signal, timeoutMs, creatorTimeoutMs = defaultCreatorTimeoutMs } = request
    const begunMs = performance.now()
    for (;;) {
      const leftMs = timeoutMs === undefined ? Number.POSITIVE_INFINITY : timeoutMs - (performance.now() - begunMs)
      let creator: string | undefined
      const judge = ({ metadata }: Stored<KubeObject>): Verdict => {
        const now = metadata.annotations?.[deliveryPendingKey]
        // Another caller delivers instead of the creator that was waited for: its time begins anew.
        if (now === undefined || (creator !== undefined && creator !== now)) return { done: true }
        creator = now
        return { done: false, why: 'its creator has not delivered its variables, files and repository yet' }
      }
      const wait = { signal, timeoutMs: Math.max(0, Math.min(creatorTimeoutMs, leftMs)) }
      try {
        const { metadata } = await waitFor(await this.#kube(), kind, ref, judge, wait)
        if (metadata.annotations?.[deliveryPendingKey] === undefined) return handle
      } catch (error) {
        const isCreatorGone = error instanceof SandboxError && error.code === 'SandboxNotReady'
        if (!isCreatorGone || leftMs <= creatorTimeoutMs) throw error
        if (!(await this.#takeOver(kind, ref, creator, signal))) continue
        await bind(handle, request)
        await this.#unmark(kind, ref, signal)
        return handle
      }
    }
  }

  /** Whether this caller delivers now instead of `creator`; false where another came first. */
  async #takeOver(
    kind: ResourceKind,
    ref: { name: string; namespace: string },
    creator: string | undefined,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const call = signal ? { signal } : {}
    const kube = await this.#kube()
    const { metadata } = await translated(() => kube.get(kind, ref, call), signal)
    if (metadata.annotations?.[deliveryPendingKey] !== creator) return false
    const annotations = { [deliveryPendingKey]: randomUUID() }
    const body = { metadata: { resourceVersion: metadata.resourceVersion, annotations } }
    try {
      await kube.patch(kind, ref, { type: 'merge', body }, call)
      return true
    } catch (error) {
      // Changed since it was read, by another caller or by a controller.
      if (!isConflict(error)) throw toSandboxError(error, signal)
      return this.#takeOver(kind, ref, creator, signal)
    }
  }

  async #unmark(kind: ResourceKind, ref: { name: string; namespace: string }, signal?: AbortSignal): Promise<void> {
    const body = { metadata: { annotations: { [deliveryPendingKey]: null } } }
    const kube = await this.#kube()
    await translated(() => kube.patch(kind, ref, { type: 'merge', body }, signal ? { signal } : {}), signal)
  }

  /** A handle that owns what was just made. For `create`. */
  owned(
    sandbox: Stored<Sandbox>,
    claimName: string | undefined,
    remove: (signal?: AbortSignal) => Promise<void>,
  ): OwnedSandbox {
    const { cleanup } = this.#options
    const tracked = async (signal?: AbortSignal): Promise<void> => {
      // Where the client was closed: that is why, and not a connection that one could try again.
      await this.#kube()
      await remove(signal)
      cleanup?.forget(handle)
    }
    const handle: OwnedSandbox = new OwnedSandbox(this.#parts(sandbox), refOf(sandbox, claimName), tracked)
    cleanup?.track(handle, tracked)
    return handle
  }

  /** A handle on an object that was just read. */
  borrowed(sandbox: Stored<Sandbox>, claimName?: string): SandboxHandle {
    return new SandboxHandle(this.#parts(sandbox), refOf(sandbox, claimName))
  }

  #parts(sandbox: Stored<Sandbox>): HandleParts {
    const { links, telemetry } = this.#options
    const kube = () => this.#kube()
    const traced = { ...this.#options.link, traceHeaders: () => telemetry.headers() }
    const link = new SandboxLink(kube, refOf(sandbox), traced, sandbox)
    links.add(link)
    return { sandboxes: this, kube, telemetry, link }
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
    const { namespace } = options
    const { metadata } = await outlasting(options.signal, (signal) =>
      this.#setMode(name, 'Suspended', { namespace, ...(signal ? { signal } : {}) }),
    )
    const isPaused = isSuspendedSince(metadata.generation)
    await waitFor(await this.#kube(), Sandboxes, await this.#ref({ name, ...options }), isPaused, options)
  }

  /**
   * Starts a paused sandbox; resolves when it is ready again. One whose pod still ends is waited for first: told to run
   * before that, a controller may call it ready for the pod that goes.
   */
  async resume(name: string, options: WaitOptions & InNamespace = {}): Promise<void> {
    const kube = await this.#kube()
    const ref = await this.#ref({ name, ...options })
    const hasEnded = (sandbox: Stored<Sandbox>): Verdict => {
      const isSaid = sandbox.status?.conditions?.some(({ type }) => type === 'Suspended')
      // Controllers before 1.0 do not tell when the pod has ended.
      if (sandbox.spec.operatingMode !== 'Suspended' || !isSaid) return { done: true }
      return isSuspendedSince(sandbox.metadata.generation)(sandbox)
    }
    const begunMs = performance.now()
    await waitFor(kube, Sandboxes, ref, hasEnded, options)
    const { namespace } = ref
    const { metadata } = await outlasting(options.signal, (signal) =>
      this.#setMode(name, 'Running', { namespace, ...(signal ? { signal } : {}) }),
    )
    const judge = readyVerdict('Sandbox', name)
    const isResumed = (sandbox: Stored<Sandbox>): Verdict => {
      const ready = sandbox.status?.conditions?.find((condition) => condition.type === 'Ready')
      // What the conditions say about the time before the change is no answer yet.
      if ((ready?.observedGeneration ?? 0) < (metadata.generation ?? 0)) return { done: false, why: 'it is suspended' }
      return judge(sandbox)
    }
    const { timeoutMs } = options
    const leftMs = timeoutMs === undefined ? undefined : Math.max(0, timeoutMs - (performance.now() - begunMs))
    await waitFor(kube, Sandboxes, ref, isResumed, { ...options, timeoutMs: leftMs })
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

  /** A connection to the daemon inside, which the caller closes. */
  async connect(sandbox: SandboxRef, options: { signal?: AbortSignal | undefined } = {}): Promise<SandboxConnection> {
    const { connection, connectMs } = this.#options.link
    const kube = await this.#kube()
    const { signal } = options
    const ref = await this.#ref(sandbox)
    const object = await this.objects.get(ref.name, { namespace: ref.namespace, ...(signal ? { signal } : {}) })
    return connectThrough(await openTransport(connection, kube, object, podNameOf(object), { signal, connectMs }))
  }

  /** The pod behind a sandbox. */
  async podOf(sandbox: SandboxRef, options: { signal?: AbortSignal | undefined } = {}): Promise<Required<ObjectRef>> {
    const { signal } = options
    const ref = await this.#ref(sandbox)
    const object = await this.objects.get(ref.name, { namespace: ref.namespace, ...(signal ? { signal } : {}) })
    requireRunning(object)
    return { name: podNameOf(object), namespace: ref.namespace }
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

/** Whether the pod has ended since the sandbox was told to, in the change that made this generation. */
function isSuspendedSince(generation = 0): (sandbox: Stored<Sandbox>) => Verdict {
  return ({ status }) => {
    const suspended = status?.conditions?.find(({ type }) => type === 'Suspended')
    const isCurrent = (suspended?.observedGeneration ?? generation) >= generation
    if (isCurrent && suspended?.status === 'True') return { done: true }
    return { done: false, why: suspended ? `${suspended.reason}: ${suspended.message}` : 'it still runs' }
  }
}

function refOf(sandbox: Stored<Sandbox>, claimName?: string) {
  const { name, namespace = 'default' } = sandbox.metadata
  return { name, namespace, claimName }
}
