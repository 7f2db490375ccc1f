import type { TLSSocket } from 'node:tls'

/** One figure an autoscaler may ask for. */
export interface ExternalMetric {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface ExternalMetricsOptions {
  /** The only namespace that has figures. */
  namespace: string
  /** The figures as they are now; undefined where another process knows them. */
  read(): readonly ExternalMetric[] | undefined
  now(): Date
}

const version = 'external.metrics.k8s.io/v1beta1'
const metricNames = ['corral_tasks_waiting', 'corral_tasks_running', 'corral_pool_demand'] as const
export type ExternalMetricName = (typeof metricNames)[number]

/**
 * The API group from which a HorizontalPodAutoscaler reads figures, as the API server's aggregation layer asks for it.
 * Who may ask is decided before: see `isAggregator`.
 */
export function createExternalMetricsApp(options: ExternalMetricsOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.method !== 'GET') return failure(405, 'MethodNotAllowed', 'these figures can only be read')
    const url = new URL(request.url)
    const parts = url.pathname.split('/').filter((part) => part !== '')
    if (parts.slice(0, 3).join('/') !== `apis/${version}`)
      return failure(404, 'NotFound', `only /apis/${version} is served`)
    const [, , , scope, namespace, name, ...rest] = parts
    if (scope === undefined) return json(200, resources)
    if (scope !== 'namespaces' || !isMetric(name) || rest.length > 0)
      return failure(404, 'NotFound', `there are ${metricNames.join(', ')}, each in a namespace`)
    const found = options.read()
    if (!found) return failure(503, 'ServiceUnavailable', 'another process reconciles tasks; ask again')
    const wanted = selector(url.searchParams.get('labelSelector') ?? '')
    if (!wanted) return failure(400, 'BadRequest', 'only label selectors of the form name=value are understood')
    const items = found
      .filter((metric) => metric.name === name && namespace === options.namespace)
      .filter(({ labels }) => wanted.every(([label, value]) => labels[label] === value))
    return json(200, {
      kind: 'ExternalMetricValueList',
      apiVersion: version,
      metadata: {},
      items: items.map(({ labels, value }) => ({
        metricName: name,
        metricLabels: labels,
        timestamp: `${options.now().toISOString().slice(0, 19)}Z`,
        value: String(value),
      })),
    })
  }
}

/** Whether the other end showed the certificate of an aggregation layer: signed by its authority, and of a known name. */
export function isAggregator(socket: TLSSocket, allowedNames: readonly string[]): boolean {
  if (!socket.authorized) return false
  const { subject } = socket.getPeerCertificate()
  const name = [subject?.CN].flat()[0]
  return allowedNames.length === 0 || (name !== undefined && allowedNames.includes(name))
}

const resources = {
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion: version,
  resources: metricNames.map((name) => ({
    name,
    singularName: '',
    namespaced: true,
    kind: 'ExternalMetricValueList',
    verbs: ['get'],
  })),
}

function isMetric(name: string | undefined): name is ExternalMetricName {
  return metricNames.some((known) => known === name)
}

/** `a=b,c==d` as pairs; undefined for anything else a selector may say. */
function selector(text: string): [string, string][] | undefined {
  const terms = text.split(',').filter((term) => term.trim() !== '')
  const pairs = terms.map((term) => /^\s*([\w./-]+)\s*==?\s*([\w.-]*)\s*$/.exec(term))
  if (pairs.includes(null)) return undefined
  return pairs.map((pair) => [pair?.[1] ?? '', pair?.[2] ?? ''])
}

function failure(code: number, reason: string, message: string): Response {
  return json(code, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code })
}

function json(status: number, body: object): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })
}
