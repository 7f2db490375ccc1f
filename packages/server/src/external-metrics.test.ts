import type { TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { createExternalMetricsApp, type ExternalMetric, isAggregator } from './external-metrics.js'

const figures: ExternalMetric[] = [
  { name: 'corral_tasks_waiting', labels: {}, value: 4 },
  { name: 'corral_pool_demand', labels: { pool: 'default' }, value: 3 },
  { name: 'corral_pool_demand', labels: { pool: 'large' }, value: 1 },
]
const base = 'https://server/apis/external.metrics.k8s.io/v1beta1'

function ask(path: string, read: () => readonly ExternalMetric[] | undefined = () => figures): Promise<Response> {
  const now = (): Date => new Date('2026-01-02T03:04:05.678Z')
  return createExternalMetricsApp({ namespace: 'corral', read, now })(new Request(`${base}${path}`))
}
const items = async (path: string): Promise<unknown> => ((await (await ask(path)).json()) as { items: unknown }).items

describe('S4-P3.5: figures for a HorizontalPodAutoscaler', () => {
  it('are discovered as resources of a namespace', async () => {
    const { groupVersion, resources } = (await (await ask('')).json()) as {
      groupVersion: string
      resources: { name: string; namespaced: boolean }[]
    }
    expect(groupVersion).toBe('external.metrics.k8s.io/v1beta1')
    expect(resources.map(({ name }) => name)).toEqual([
      'corral_tasks_waiting',
      'corral_tasks_running',
      'corral_pool_demand',
    ])
  })

  it('have a value and a time', async () => {
    expect(await items('/namespaces/corral/corral_tasks_waiting')).toEqual([
      { metricName: 'corral_tasks_waiting', metricLabels: {}, timestamp: '2026-01-02T03:04:05Z', value: '4' },
    ])
  })

  it.each([
    ['of one pool', '?labelSelector=pool%3Dlarge', ['1']],
    ['of every pool', '', ['3', '1']],
    ['of a pool that is not there', '?labelSelector=pool%3Dnone', []],
  ])('are chosen by label: %s', async (_what, query, values) => {
    const found = (await items(`/namespaces/corral/corral_pool_demand${query}`)) as { value: string }[]
    expect(found.map(({ value }) => value)).toEqual(values)
  })

  it('are empty in another namespace', async () => {
    expect(await items('/namespaces/other/corral_tasks_waiting')).toEqual([])
  })

  it.each([
    ['a figure that is not there', '/namespaces/corral/cpu', 404, 'NotFound'],
    ['a selector of sets', '/namespaces/corral/corral_pool_demand?labelSelector=pool%20in%20(a)', 400, 'BadRequest'],
    ['a path of another group', '/../../metrics.k8s.io/v1beta1/nodes', 404, 'NotFound'],
  ])('refuse %s', async (_what, path, code, reason) => {
    const answer = await ask(path)
    expect([answer.status, ((await answer.json()) as { reason: string }).reason]).toEqual([code, reason])
  })

  it('are unavailable, not zero, where another process reconciles', async () => {
    expect((await ask('/namespaces/corral/corral_tasks_waiting', () => undefined)).status).toBe(503)
  })
})

describe('what the aggregation layer is answered', () => {
  const app = createExternalMetricsApp({ namespace: 'corral', read: () => figures, now: () => new Date(0) })
  const said = async (path: string, method = 'GET') => {
    const answer = await app(new Request(`https://server${path}`, { method }))
    return [answer.status, answer.headers.get('content-type'), await answer.json()]
  }
  const status = (code: number, reason: string, message: string) => [
    code,
    'application/json',
    { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code },
  ]
  const group = '/apis/external.metrics.k8s.io/v1beta1'
  const names = 'there are corral_tasks_waiting, corral_tasks_running, corral_pool_demand, each in a namespace'

  it('of the group: its resources', async () => {
    expect(await said(group)).toEqual([
      200,
      'application/json',
      {
        kind: 'APIResourceList',
        apiVersion: 'v1',
        groupVersion: 'external.metrics.k8s.io/v1beta1',
        resources: ['corral_tasks_waiting', 'corral_tasks_running', 'corral_pool_demand'].map((name) => ({
          ...{ name, singularName: '', namespaced: true, kind: 'ExternalMetricValueList', verbs: ['get'] },
        })),
      },
    ])
  })

  it.each([
    [`${group}/namespaces/corral/cpu`, status(404, 'NotFound', names)],
    [`${group}/nodes/corral/corral_tasks_waiting`, status(404, 'NotFound', names)],
    [`${group}/namespaces/corral/corral_tasks_waiting/x`, status(404, 'NotFound', names)],
    [`${group}/namespaces/corral`, status(404, 'NotFound', names)],
    ['/apis/metrics.k8s.io', status(404, 'NotFound', 'only /apis/external.metrics.k8s.io/v1beta1 is served')],
  ])('of %s', async (path, expected) => {
    expect(await said(path)).toEqual(expected)
  })

  it('of a write, and of a selector of sets', async () => {
    expect(await said(group, 'POST')).toEqual(status(405, 'MethodNotAllowed', 'these figures can only be read'))
    const wrong = 'only label selectors of the form name=value are understood'
    expect(await said(`${group}/namespaces/corral/corral_pool_demand?labelSelector=pool!%3Da`)).toEqual(
      status(400, 'BadRequest', wrong),
    )
  })

  it.each([
    ['pool==large', 1],
    [' pool = large , ', 1],
    ['pool=large,zone=a', 0],
    ['pool=', 0],
  ])('of the selector "%s": %i figures', async (selector, count) => {
    const path = `/namespaces/corral/corral_pool_demand?labelSelector=${encodeURIComponent(selector)}`
    expect(await items(path)).toHaveLength(count)
  })
})

describe('an aggregation layer', () => {
  const socket = (authorized: boolean, CN?: string | string[]) =>
    ({ authorized, getPeerCertificate: () => (CN === undefined ? {} : { subject: { CN } }) }) as unknown as TLSSocket
  it.each([
    { when: 'its certificate is of another authority', of: socket(false, 'front-proxy'), names: [], is: false },
    { when: 'any name will do', of: socket(true), names: [], is: true },
    { when: 'it has the name', of: socket(true, 'front-proxy'), names: ['front-proxy'], is: true },
    { when: 'its first name is the one', of: socket(true, ['front-proxy', 'x']), names: ['front-proxy'], is: true },
    { when: 'it has another name', of: socket(true, 'me'), names: ['front-proxy'], is: false },
    { when: 'it has no name', of: socket(true), names: ['front-proxy'], is: false },
  ])('is known when $when: $is', ({ of, names, is }) => {
    expect(isAggregator(of, names)).toBe(is)
  })
})
