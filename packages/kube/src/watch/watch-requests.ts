import {
  errorCode,
  type KubeList,
  type KubeObject,
  type ResourceKind,
  type Stored,
  type WatchEvent,
} from '@corral/resources'
import type { KubeClient, ListOptions, ObservedBatch, ObserveOptions, WatchOptions } from '../kube-client.js'
import type { KubeTransport } from '../kube-transport.js'
import { resourcePath } from '../resource-path.js'
import { type WatchQuery, type WatchRequests, watchLoop } from './watch-loop.js'

/** Servers answer a watch at once, before its first event. */
const headersTimeoutMs = 30_000

/** The pages of a list, one request each. */
export async function* listPages<T extends KubeObject>(
  client: Pick<KubeClient, 'list'>,
  kind: ResourceKind<T>,
  options: ListOptions,
): AsyncGenerator<KubeList<T>> {
  let page = await client.list(kind, options)
  yield page
  // The version belongs to the first page; the token carries it on.
  const { resourceVersion: _, resourceVersionMatch: __, ...rest } = options
  while (page.metadata.continue) {
    page = await client.list(kind, { ...rest, continue: page.metadata.continue })
    yield page
  }
}

/** `KubeClient.observe` on a transport. */
export function observe<T extends KubeObject>(
  client: KubeClient,
  transport: KubeTransport,
  kind: ResourceKind<T>,
  options: ObserveOptions<T>,
): AsyncGenerator<ObservedBatch<T>> {
  const { resourceVersion, onError, signal } = options
  const requests = watchRequests(client, transport, kind, options)
  return watchLoop(requests, { resourceVersion, allowInitial: !transport.inProcess, signal, onError })
}

/** `KubeClient.watch` on a transport. */
export async function* watch<T extends KubeObject>(
  client: KubeClient,
  transport: KubeTransport,
  kind: ResourceKind<T>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<Stored<T>>> {
  for await (const { deltas } of observe(client, transport, kind, options)) {
    for (const { type, object } of deltas) yield { type, object }
  }
}

function watchRequests<T extends KubeObject>(
  client: KubeClient,
  transport: KubeTransport,
  kind: ResourceKind<T>,
  options: ObserveOptions<T>,
): WatchRequests<T> {
  const { namespace, labelSelector, fieldSelector, transform } = options
  const selection: ListOptions = {
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  }
  return {
    async list(signal) {
      const { items, resourceVersion } = await listWhole(client, kind, { ...selection, signal }, transport.inProcess)
      return { items: transform ? items.map(transform) : items, resourceVersion }
    },
    async open(query, signal) {
      const path = resourcePath(kind, namespace)
      const timeoutMs = transport.inProcess ? undefined : headersTimeoutMs
      const events = await transport.watch({
        method: 'GET',
        path,
        query: toParams(selection, query),
        signal,
        timeoutMs,
      })
      return transform ? transformed(events, transform) : events
    },
  }
}

async function listWhole<T extends KubeObject>(
  client: KubeClient,
  kind: ResourceKind<T>,
  options: ListOptions,
  atOnce: boolean,
): Promise<{ items: Stored<T>[]; resourceVersion: string }> {
  try {
    const items: Stored<T>[] = []
    let resourceVersion = ''
    for await (const page of listPages(client, kind, atOnce ? options : { ...options, limit: 500 })) {
      for (const item of page.items) items.push(item)
      resourceVersion = page.metadata.resourceVersion ?? resourceVersion
    }
    return { items, resourceVersion }
  } catch (error) {
    // The snapshot behind the pages is gone: one request for everything cannot outlive its own.
    if (atOnce || errorCode(error) !== 'Expired') throw error
    return listWhole(client, kind, options, true)
  }
}

function toParams(selection: ListOptions, query: WatchQuery): URLSearchParams {
  const params = new URLSearchParams({ watch: 'true', allowWatchBookmarks: 'true' })
  params.set('timeoutSeconds', String(query.timeoutSeconds))
  if (selection.labelSelector !== undefined) params.set('labelSelector', selection.labelSelector)
  if (selection.fieldSelector !== undefined) params.set('fieldSelector', selection.fieldSelector)
  if (query.sendInitialEvents) {
    params.set('sendInitialEvents', 'true')
    params.set('resourceVersionMatch', 'NotOlderThan')
  } else if (query.resourceVersion !== undefined) params.set('resourceVersion', query.resourceVersion)
  return params
}

async function* transformed<T extends KubeObject>(
  events: AsyncIterable<WatchEvent>,
  transform: (object: Stored<T>) => Stored<T>,
): AsyncGenerator<WatchEvent> {
  for await (const event of events) {
    const isObject = event.type === 'ADDED' || event.type === 'MODIFIED' || event.type === 'DELETED'
    yield isObject ? { type: event.type, object: transform(event.object as Stored<T>) } : event
  }
}
