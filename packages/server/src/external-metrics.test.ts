import { describe, expect, it } from 'vitest'
import { createExternalMetricsApp, type ExternalMetric } from './external-metrics.js'

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
