import { setMaxListeners } from 'node:events'
import {
  type ApiConnection,
  type ApiHandler,
  type ApiRequest,
  type ApiResponse,
  type Clock,
  type Logger,
  type PodStreams,
  silentLogger,
  systemClock,
} from '@corral/ports'
import type { CustomResourceDefinition } from '@corral/resources'
import { TokenAuthority } from '../auth/token-authority.js'
import type { ServerContext } from '../context/server-context.js'
import { versionDocument } from '../context/version.js'
import { followDefinitions } from '../crd/crd-installer.js'
import { discoveryResponse } from '../discovery/discovery.js'
import { OpenApiPages } from '../discovery/open-api.js'
import { openApiV2Response } from '../discovery/open-api-v2.js'
import { apiError, methodNotAllowed, unauthorized, unknownPath } from '../errors/api-error.js'
import { startHousekeeping } from '../housekeeping/index.js'
import { ClusterIpRange } from '../registry/cluster-ip-range.js'
import { KindRegistry } from '../registry/kind-registry.js'
import { inWantedFormat } from '../request/answer-format.js'
import { errorResponse, isApiError, objectResponse, textResponse } from '../request/responses.js'
import { startScheduler } from '../schedule/scheduler.js'
import type { Storage } from '../storage/storage.js'
import { ObjectStore } from '../store/object-store.js'
import { openConnection, planStream, type StreamPlan } from '../subresources/pod-streams.js'
import { builtinKinds } from './builtin-kinds.js'
import { dispatchResource, resolveResource } from './dispatch.js'
import { housekeepingStore } from './housekeeping-store.js'
import { seedObjects } from './seed.js'

export interface ApiServerOptions {
  storage: Storage
  clock?: Clock
  log?: Logger
  podStreams?: PodStreams
  /** Definitions the server brings along: installed at start, replaced when they changed. */
  crds?: readonly CustomResourceDefinition[]
  /** What `/version` says; a semantic version. */
  version?: string
  /** Signs service account tokens; without it tokens are worth nothing after a restart. */
  tokenKey?: Uint8Array
  /** Whether pending pods are given to the first ready node; true unless said otherwise. */
  schedulesPods?: boolean
}

/** The embedded API server as a handler. `close` ends running watches and settles once everything written is stored. */
export interface ApiServer extends ApiHandler {
  /** Settles when stored objects are loaded and the server's own are in place. */
  readonly ready: Promise<void>
  /** Names the one who serves exec, attach, logs and port-forward from now on. */
  setPodStreams(podStreams: PodStreams | undefined): void
  /** The user behind a service account's token; undefined for anything else. */
  authenticateToken(token: string): { name: string; groups: readonly string[] } | undefined
  /** Checks an exec, attach or port-forward request that comes over a socket; throws the refusal. */
  planStream(request: ApiRequest): StreamPlan
  close(): Promise<void>
}

/** Opens the storage and starts a server on it. Rejects with a `StorageError` when the storage cannot be used. */
export async function createApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const server = new EmbeddedApiServer(options)
  await server.start(options)
  return server
}

class EmbeddedApiServer implements ApiServer {
  readonly ready: Promise<void>
  private readonly context: ServerContext
  private readonly version: object
  private readonly openApi: OpenApiPages
  private readonly closing = new AbortController()
  private readonly stops: (() => void | Promise<void>)[] = []
  private podStreams: PodStreams | undefined
  private isReady = false
  private markReady: () => void = () => {}

  constructor(options: ApiServerOptions) {
    const clock = options.clock ?? systemClock
    this.podStreams = options.podStreams
    this.version = versionDocument(options.version ?? 'v1.34.4+corral')
    this.context = {
      store: new ObjectStore(options.storage, clock),
      registry: new KindRegistry(),
      clock,
      log: options.log ?? silentLogger,
      clusterIps: new ClusterIpRange(),
      tokens: new TokenAuthority(clock, options.tokenKey),
      podStreams: () => this.podStreams,
    }
    // One listener per running watch is no leak.
    setMaxListeners(0, this.closing.signal)
    this.openApi = new OpenApiPages(this.context.registry)
    this.ready = new Promise((resolve) => {
      this.markReady = resolve
    })
  }

  async start(options: ApiServerOptions): Promise<void> {
    const { store, registry, clusterIps } = this.context
    await store.open()
    for (const kind of builtinKinds()) registry.add(kind)
    for (const service of store.collection('services').list()) clusterIps.learn(service)
    this.stops.push(
      followDefinitions(store, registry),
      store.listen((collection, event) => {
        if (collection !== 'services') return
        if (event.type === 'DELETED') clusterIps.forget(event.object)
        else clusterIps.learn(event.object)
      }),
    )
    await seedObjects(this.context, options.crds ?? [])
    const housekeepers = startHousekeeping({
      store: housekeepingStore(this.context),
      clock: this.context.clock,
      log: this.context.log,
    })
    this.stops.push(() => housekeepers.close())
    if (options.schedulesPods ?? true) this.stops.push(startScheduler(this.context))
    this.isReady = true
    this.markReady()
  }

  setPodStreams(podStreams: PodStreams | undefined): void {
    this.podStreams = podStreams
  }

  authenticateToken(token: string): { name: string; groups: readonly string[] } | undefined {
    const user = this.context.tokens.verify(token)
    if (!user) return undefined
    const [, , namespace = '', name = ''] = user.name.split(':')
    const account = this.context.store.collection('serviceaccounts').find(namespace, name)
    return account?.metadata?.uid === user.uid ? user : undefined
  }

  async handle(request: ApiRequest): Promise<ApiResponse> {
    let response: ApiResponse
    try {
      response = await this.respond(request)
    } catch (error) {
      response = this.refuse(request.method === 'GET' ? error : await this.onceVisible(error), request)
    }
    return inWantedFormat(request, response)
  }

  async connect(request: ApiRequest): Promise<ApiConnection | ApiResponse> {
    try {
      const resource = resolveResource(this.context, request)
      if (!resource) throw unknownPath()
      return await openConnection(resource, this.podStreams)
    } catch (error) {
      return this.refuse(error, request)
    }
  }

  planStream(request: ApiRequest): StreamPlan {
    if (!request.user) throw unauthorized()
    const resource = resolveResource(this.context, request)
    if (!resource) throw unknownPath()
    return planStream(resource, () => this.podStreams)
  }

  async close(): Promise<void> {
    this.isReady = false
    this.closing.abort()
    for (const stop of this.stops.toReversed()) await stop()
    await this.context.store.close()
  }

  private async respond(request: ApiRequest): Promise<ApiResponse> {
    const isOpen = this.openResponse(request)
    if (isOpen) return isOpen
    if (!request.user) throw unauthorized()
    if (!this.isReady) {
      throw apiError(503, 'ServiceUnavailable', 'the server is starting or stopping', { retryAfterSeconds: 1 })
    }
    const resource = resolveResource(this.context, this.withClosing(request))
    if (resource) return dispatchResource(resource)
    const discovery = discoveryResponse(this.context.registry, request.path, request.headers.accept ?? '')
    if (request.method !== 'GET') throw discovery ? methodNotAllowed() : unknownPath()
    if (discovery) return discovery
    const openApiV2 = openApiV2Response(request.path, request.headers.accept ?? '')
    if (openApiV2) return openApiV2
    const openApi = await this.openApi.respond(request.path, request.query)
    if (openApi) return openApi
    throw unknownPath()
  }

  /** Health and version: open to every client. */
  private openResponse({ path, query, method }: ApiRequest): ApiResponse | undefined {
    switch (path) {
      case '/livez/ping':
      case '/healthz/ping':
      case '/readyz/ping':
        return textResponse(200, 'ok')
      case '/livez':
      case '/healthz':
        return textResponse(200, query.has('verbose') ? `[+]ping ok\n${path.slice(1)} check passed\n` : 'ok')
      case '/readyz':
        if (!this.isReady) return textResponse(500, 'not ready')
        if (this.context.store.isDiskFull)
          return textResponse(500, '[+]ping ok\n[-]storage failed: DiskFull\nreadyz check failed\n')
        return textResponse(200, query.has('verbose') ? '[+]ping ok\n[+]storage ok\nreadyz check passed\n' : 'ok')
      case '/version':
      case '/version/':
        if (method !== 'GET') throw methodNotAllowed()
        return objectResponse(200, this.version)
      default:
        return undefined
    }
  }

  /** Watches also end when the server closes. */
  private withClosing(request: ApiRequest): ApiRequest {
    if (!request.query.has('watch')) return request
    const { signal } = this.closing
    return { ...request, signal: request.signal ? AbortSignal.any([request.signal, signal]) : signal }
  }

  /**
   * A write is refused because of the head, which readers may not see yet: "already exists" is said once a GET finds it.
   * Where the writes it rests on are lost, that is the error instead.
   */
  private onceVisible(error: unknown): Promise<unknown> {
    return this.context.store.settled().then(
      () => error,
      (lost: unknown) => lost,
    )
  }

  private refuse(error: unknown, request: ApiRequest): ApiResponse {
    const response = errorResponse(error)
    if (!isApiError(error) && response.status === 500) {
      this.context.log.error('request failed', { method: request.method, path: request.path, error })
    }
    return response
  }
}
