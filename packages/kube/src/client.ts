import type { ApiConnection, ApiHandler, ApiUser, DuplexProcess, LogStreamOptions } from '@corral/ports'
import {
  defineKind,
  isNotFound,
  KubeError,
  type KubeList,
  type KubeObject,
  type ResourceKind,
  type Status,
  type Stored,
} from '@corral/resources'
import { handlerTransport } from './handler-transport.js'
import type {
  CallOptions,
  ExecOptions,
  KubeClient,
  ObjectRef,
  PatchBody,
  PatchOptions,
  WriteOptions,
} from './kube-client.js'
import type { KubeTransport, TransportRequest, TransportResponse } from './kube-transport.js'
import { deleteBody, execQuery, listQuery, logQuery, patchQuery, writeQuery } from './request-query.js'
import { requestWords } from './request-words.js'
import { objectPath, resourcePath } from './resource-path.js'
import { responseError } from './response-error.js'
import { retryReads } from './retry.js'
import { listPages, observe, watch } from './watch/watch-requests.js'

export interface KubeClientOptions {
  transport: KubeTransport
  /** `default` without it. */
  defaultNamespace?: string
  /** Default `fieldManager` of applies. */
  fieldManager?: string
  /** Bounds calls that name no timeout of their own; streams and watches are not calls. */
  timeoutMs?: number
}

type RequestDraft = { -readonly [Key in keyof TransportRequest]: TransportRequest[Key] }

const podKind = defineKind('v1', 'Pod', 'pods')

const patchTypes: Readonly<Record<PatchBody['type'], string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

/** A client on any transport. It owns the transport: `close` closes it. */
export function createKubeClient(options: KubeClientOptions): KubeClient {
  const { transport, defaultNamespace = 'default', fieldManager = 'corral' } = options
  const timeoutMs = options.timeoutMs ?? (transport.inProcess ? undefined : 30_000)

  /** Takes the request over. */
  async function send<T>(request: RequestDraft, call: CallOptions): Promise<T> {
    request.signal = call.signal
    request.timeoutMs = call.timeoutMs ?? timeoutMs
    const response = await answer(request)
    // A page of a proxy, or of another program: read as an object it would fail far from here.
    if (response.status < 300 && typeof response.body === 'string')
      throw new KubeError(
        'ProtocolViolation',
        `${requestWords(request)}: the answer is no JSON: is this an API server?`,
      )
    if (response.status < 300) return response.body as T // the server is who says what a kind looks like
    throw responseError(response, requestWords(request))
  }
  const answer = (request: TransportRequest): Promise<TransportResponse> =>
    request.method === 'GET'
      ? retryReads(
          () => transport.call(request),
          request.signal,
          (status) => transport.retried?.(request, status),
        )
      : transport.call(request)

  const pathOf = (kind: ResourceKind, ref: ObjectRef, subresource?: string) =>
    objectPath(kind, ref.namespace ?? defaultNamespace, ref.name, subresource)

  function write<T extends KubeObject>(
    method: 'POST' | 'PUT',
    kind: ResourceKind<T>,
    object: T,
    call: WriteOptions,
    subresource?: string,
  ) {
    const { name, namespace = defaultNamespace } = object.metadata ?? {}
    const path =
      method === 'POST' ? resourcePath(kind, namespace) : objectPath(kind, namespace, name ?? '', subresource)
    return send<Stored<T>>(
      { method, path, query: writeQuery(call), contentType: 'application/json', body: withType(kind, object) },
      call,
    )
  }

  function patch<T extends KubeObject>(kind: ResourceKind<T>, ref: ObjectRef, body: PatchBody, call: PatchOptions) {
    const path = pathOf(kind, ref, call.subresource)
    const manager = body.type === 'apply' ? { fieldManager, ...call } : call
    const request = {
      method: 'PATCH',
      path,
      query: patchQuery(manager),
      contentType: patchTypes[body.type],
      body: body.body,
    }
    return send<Stored<T>>(request as TransportRequest, call)
  }

  async function connectProcess(
    pod: ObjectRef,
    subresource: string,
    call: Partial<ExecOptions>,
  ): Promise<DuplexProcess> {
    const connection = await connect(pod, subresource, execQuery(call), call)
    if (connection.type !== 'process') throw new TypeError('the server answered a process request with a port')
    return connection.process
  }
  const connect = (pod: ObjectRef, sub: string, query: URLSearchParams, call: CallOptions): Promise<ApiConnection> =>
    transport.connect({
      method: 'GET',
      path: pathOf(podKind, pod, sub),
      query,
      signal: call.signal,
      timeoutMs: call.timeoutMs ?? 30_000,
    })

  const get: KubeClient['get'] = async (kind, ref, call = {}) => {
    return withType(kind, await send({ method: 'GET', path: pathOf(kind, ref) }, call))
  }

  const client: KubeClient = {
    defaultNamespace,
    get,
    async find(kind, ref, call) {
      try {
        return await get(kind, ref, call)
      } catch (error) {
        if (isNotFound(error)) return undefined
        throw error
      }
    },
    async list(kind, call = {}) {
      const path = resourcePath(kind, call.namespace)
      return typedList(kind, await send({ method: 'GET', path, query: listQuery(call) }, call))
    },
    async *items(kind, call = {}) {
      for await (const page of listPages(client, kind, { limit: 500, ...call })) yield* page.items
    },
    create: (kind, object, call = {}) => write('POST', kind, object, call),
    update: (kind, object, call = {}) => write('PUT', kind, object, call),
    updateStatus: (kind, object, call = {}) => write('PUT', kind, object, call, 'status'),
    patch: (kind, ref, body, call = {}) => patch(kind, ref, body, call),
    apply(kind, object, call = {}) {
      const { name = '', namespace } = object.metadata ?? {}
      const ref = namespace === undefined ? { name } : { name, namespace }
      return patch(kind, ref, { type: 'apply', body: withType(kind, object) }, call)
    },
    delete(kind, ref, call = {}) {
      return send({ method: 'DELETE', path: pathOf(kind, ref), query: writeQuery(call), ...deleteBody(call) }, call)
    },
    async deleteCollection(kind, call) {
      const path = resourcePath(kind, call.namespace)
      await send<Status>(
        { method: 'DELETE', path, query: listQuery(call, writeQuery(call)), ...deleteBody(call) },
        call,
      )
    },
    async scale(kind, ref, replicas, call = {}) {
      await patch(kind, ref, { type: 'merge', body: { spec: { replicas } } }, { ...call, subresource: 'scale' })
    },
    watch: (kind, call = {}) => watch(client, transport, kind, call),
    observe: (kind, call = {}) => observe(client, transport, kind, call),
    exec: (pod, call) => connectProcess(pod, 'exec', call),
    attach: (pod, call) => connectProcess(pod, 'attach', call),
    async *logs(pod, call: Partial<LogStreamOptions> = {}) {
      const path = pathOf(podKind, pod, 'log')
      yield* await transport.stream({ method: 'GET', path, query: logQuery(call), signal: call.signal })
    },
    async portForward(pod, port, call = {}) {
      const connection = await connect(pod, 'portforward', new URLSearchParams({ ports: String(port) }), call)
      if (connection.type !== 'port') throw new TypeError('the server answered a port request with a process')
      return connection.stream
    },
    async raw(path, call = {}) {
      const [plain = path, search] = path.split('?')
      const { status, body } = await answer({
        method: 'GET',
        path: plain,
        ...(search ? { query: new URLSearchParams(search) } : {}),
        signal: call.signal,
        timeoutMs: call.timeoutMs ?? timeoutMs,
      })
      return { status, body }
    },
    close: () => transport.close(),
  }
  return client
}

/** A client of an API server in the same process, with administrator rights unless told otherwise. */
export function inProcessKubeClient(
  handler: ApiHandler,
  options: Omit<KubeClientOptions, 'transport'> & { user?: ApiUser; userAgent?: string } = {},
): KubeClient {
  const { user = administrator, userAgent, ...rest } = options
  return createKubeClient({ ...rest, transport: handlerTransport(handler, user, userAgent) })
}

const administrator: ApiUser = { name: 'system:admin', groups: ['system:masters', 'system:authenticated'] }

/** Servers leave kind and version out of list items; the client's promise is that every object names its own. */
function withType<T extends KubeObject>(kind: ResourceKind, object: T): T {
  if (object.kind !== undefined && object.apiVersion !== undefined) return object
  return { ...object, apiVersion: kind.apiVersion, kind: kind.kind }
}

function typedList<T extends KubeObject>(kind: ResourceKind<T>, list: KubeList<T>): KubeList<T> {
  const items = list.items ?? []
  if (items.every((item) => item.kind !== undefined && item.apiVersion !== undefined)) return list
  return { ...list, items: items.map((item) => withType(kind, item)) }
}
