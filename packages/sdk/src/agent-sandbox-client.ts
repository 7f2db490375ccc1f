import { type ClusterAccess, type KubeClient, type KubeFetch, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { type SandboxTemplate, SandboxTemplates } from '@corral/resources'
import { ClaimCollection } from './claim-collection.js'
import { ClientLinks } from './client-links.js'
import { type ConnectionOptions, checkConnection } from './connection/connection-options.js'
import { defaultConnectMs } from './connection/reach.js'
import { ExitCleanup } from './exit-cleanup.js'
import { type ClusterHealth, checkHealth } from './health-check.js'
import { VersionQuestion } from './older-api.js'
import { type ClusterScope, ResourceCollection } from './resource-collection.js'
import { PlainPods } from './runtime/plain-pods.js'
import type { RuntimeKind } from './runtime/sandbox-runtime.js'
import { SandboxCollection } from './sandbox-collection.js'
import type { SandboxConnection } from './sandbox-connection.js'
import { SandboxError, translated } from './sandbox-error.js'
import type { SandboxRef } from './sandbox-object.js'
import { Telemetry } from './telemetry.js'
import { longestMs, timeLimit } from './time-limit.js'
import { WarmPoolCollection } from './warm-pool-collection.js'

/** How to reach the cluster. Without any of it: `KUBECONFIG`, `~/.kube/config`, or the pod's ServiceAccount. */
export interface AgentSandboxClientOptions {
  /** A loaded configuration. */
  kubeConfig?: ClusterAccess
  kubeconfigPath?: string
  context?: string
  /** A client of the caller's, who also closes it. */
  client?: KubeClient
  /** Instead of the context's namespace. */
  namespace?: string
  /** Talks to a server whose certificate proves nothing. For experiments. */
  skipTLSVerify?: boolean
  /**
   * Sends what goes to the API server: calls, watches, logs. It decides on TLS, client certificates and proxies itself.
   * Commands, files and ports of a sandbox need an upgrade, which fetch cannot make, and go to the server as always,
   * unless `connection` says otherwise.
   */
  fetch?: KubeFetch
  /** How sandboxes are reached; `auto` without it. */
  connection?: ConnectionOptions
  /**
   * How long a call tries to reach a server that does not answer, such as one that is starting anew, before it fails with
   * `ConnectionLost`: 10 s without it. A command under way looks for its sandbox again for a minute.
   */
  connectTimeoutMs?: number
  /** What runs inside; found out without it. */
  runtime?: RuntimeKind
  /** The container commands go to where no runtime answers; the first without it. */
  container?: string
  /** For daemons that ask for tokens: see `signSandboxToken`. */
  daemonToken?: (sandbox: { name: string; namespace: string }) => string | Promise<string>
  /** Deletes what this client made when the program ends by itself or by SIGINT or SIGTERM. */
  cleanupOnExit?: boolean
}

/** Ways to sandboxes that ask the API server for each line; a router without an address is reached like that, too. */
const throughApi: ReadonlySet<ConnectionOptions['type']> = new Set(['auto', 'port-forward', 'pod-exec', 'router'])
const runtimeKinds: readonly RuntimeKind[] = ['corral', 'sandboxd', 'legacy', 'pod-exec']

/** The Agent Sandbox API of one cluster. Makes no connection before the first call. */
export class AgentSandboxClient implements AsyncDisposable {
  readonly sandboxes: SandboxCollection
  readonly claims: ClaimCollection
  readonly templates: ResourceCollection<SandboxTemplate>
  readonly warmPools: WarmPoolCollection
  readonly #options: AgentSandboxClientOptions
  readonly #telemetry = new Telemetry()
  readonly #links = new ClientLinks()
  #opened: Promise<{ kube: KubeClient; version: VersionQuestion | undefined }> | undefined
  #isClosed = false

  constructor(options: AgentSandboxClientOptions = {}) {
    this.#options = options
    const scope: ClusterScope = {
      kube: () => this.#kube(),
      namespace: async () => options.namespace ?? (await this.#kube()).defaultNamespace,
    }
    const connection = options.connection ?? { type: 'auto' as const }
    checkConnection(connection)
    if (options.runtime !== undefined && !runtimeKinds.includes(options.runtime))
      throw new SandboxError('Invalid', `"${options.runtime}" is no runtime: ${runtimeKinds.join(', ')}`)
    const connectMs = timeLimit(options.connectTimeoutMs ?? defaultConnectMs) ?? longestMs
    this.sandboxes = new SandboxCollection(scope, {
      link: {
        connection,
        connectMs,
        runtime: options.runtime,
        container: options.container,
        daemonToken: options.daemonToken,
        plainPods: new PlainPods(),
      },
      links: this.#links,
      telemetry: this.#telemetry,
      cleanup: options.cleanupOnExit ? new ExitCleanup() : undefined,
    })
    this.claims = new ClaimCollection(scope)
    this.templates = new ResourceCollection<SandboxTemplate>(SandboxTemplates, scope)
    this.warmPools = new WarmPoolCollection(scope)
  }

  /** The Kubernetes client beneath, for kinds this one does not know. */
  kube(): Promise<KubeClient> {
    return translated(() => this.#kube())
  }

  /** A connection to the daemon of a sandbox, which the caller closes. */
  connect(sandbox: SandboxRef, options: { signal?: AbortSignal } = {}): Promise<SandboxConnection> {
    return this.sandboxes.connect(sandbox, options)
  }

  /** What of the API is there. Rejects only when there is no usable configuration. */
  async healthCheck(options: { signal?: AbortSignal; timeoutMs?: number } = {}): Promise<ClusterHealth> {
    const kube = await translated(() => this.#kube(options.timeoutMs), options.signal)
    const isByAddress = !throughApi.has(this.#options.connection?.type ?? 'auto')
    return checkHealth(kube, this.#options.namespace ?? kube.defaultNamespace, { ...options, isByAddress })
  }

  /**
   * Closes the connections this client opened, those of its handles too: calls under way on them are `Aborted`, nothing in
   * the sandboxes ends. A client that was handed in stays open, and so does what goes over it.
   */
  async close(): Promise<void> {
    if (this.#options.client) return
    this.#isClosed = true
    this.#links.close()
    if (!this.#opened) return
    // A configuration that never loaded has nothing to close.
    const opened = await this.#opened.catch(() => undefined)
    await opened?.kube.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #kube(askWithinMs?: number): Promise<KubeClient> {
    if (this.#isClosed) throw new SandboxError('Aborted', 'this client was closed', { hint: 'Make a new one.' })
    this.#opened ??= this.#open()
    const { kube, version } = await this.#opened
    return version ? version.client(askWithinMs) : kube
  }

  async #open(): Promise<{ kube: KubeClient; version: VersionQuestion | undefined }> {
    const { client, kubeConfig, kubeconfigPath, context, skipTLSVerify, fetch, connectTimeoutMs } = this.#options
    await this.#telemetry.load()
    if (client) return { kube: client, version: undefined }
    const access =
      kubeConfig ??
      (await loadKubeConfig({
        ...(kubeconfigPath === undefined ? {} : { path: kubeconfigPath }),
        ...(context === undefined ? {} : { context }),
      }))
    const kube = kubeClientFromConfig(
      skipTLSVerify ? { ...access, tls: { ...access.tls, rejectUnauthorized: false } } : access,
      { ...(fetch ? { fetch } : {}), ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }) },
    )
    return { kube, version: new VersionQuestion(kube) }
  }
}
