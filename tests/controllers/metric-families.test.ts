import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  buildInfoGauge,
  defaultManagerOptions,
  processMetrics,
  restClientMetrics,
  startManager,
} from '@corral/controllers'
import { SandboxClaims, Sandboxes } from '@corral/resources'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { type MetricFamily, metricFamilies } from '../../conformance/controller/harness/metric-families.js'
import { claim, createPool, fullPool, readyClaim, readySandbox, sandbox, startTestCluster } from './cluster.js'

/** What upstream v1.0.3 shows after a small day, recorded by `npm run conformance:telemetry`. */
const upstream = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../conformance/controller/upstream-metrics.json'), 'utf8'),
) as MetricFamily[]

async function families(): Promise<Map<string, MetricFamily>> {
  const metrics = new Registry()
  collectDefaultMetrics({ register: metrics })
  processMetrics(metrics)
  buildInfoGauge(metrics, { version: '1', commit: '', date: '' })
  const requests = restClientMetrics(metrics)
  const exchange = { method: 'GET', host: 'server:6443', seconds: 0.1 }
  requests.exchanged({ ...exchange, status: 200, requestBytes: 10, responseBytes: 10 })
  requests.retried({ ...exchange, status: undefined })
  requests.waited(exchange)

  await using cluster = await startTestCluster()
  const options = { ...defaultManagerOptions(), leaderElection: { namespace: 'default', identity: 'test' } }
  const manager = startManager({ client: cluster.managerClient, options, metrics })
  await manager.ready
  const stamp = new Date(Date.now() - 1_000).toISOString()
  const annotations = {
    'agents.x-k8s.io/webhook-first-observed-at': stamp,
    'agents.x-k8s.io/client-first-requested-at': stamp,
  }
  await createPool(cluster.client, 1)
  await fullPool(cluster.client, 1)
  const stamped = claim('warm')
  await cluster.client.create(SandboxClaims, { ...stamped, metadata: { ...stamped.metadata, annotations } })
  await readyClaim(cluster.client, 'warm')
  await cluster.client.create(Sandboxes, sandbox('box'))
  await readySandbox(cluster.client, 'box')
  const has = async (): Promise<string> => metrics.getSingleMetricAsString('agent_sandbox_claim_startup_latency_ms')
  await expect.poll(has).toMatch(/_count\{.*\} 1/)
  expect(await metrics.metrics()).toMatch(
    /leader_election_master_status\{name="a3317529\.agent-sandbox\.x-k8s\.io"\} 1/,
  )
  const text = await metrics.metrics()
  await manager.stop()
  return metricFamilies(text)
}

describe('metrics', () => {
  it('have every name, type, label and bucket that upstream shows', async () => {
    const ours = await families()
    expect(upstream.length).toBeGreaterThan(40)
    expect(upstream.map(({ name }) => ours.get(name) ?? `${name} is missing`)).toEqual(upstream)
  })

  it('tell of requests in the words of client-go', async () => {
    const metrics = new Registry()
    const requests = restClientMetrics(metrics)
    const exchange = { host: 'server:6443', seconds: 0.2, requestBytes: 300 }
    requests.exchanged({ ...exchange, method: 'POST', status: 201, responseBytes: 600 })
    requests.exchanged({ ...exchange, method: 'GET', status: undefined, responseBytes: undefined })
    const text = await metrics.metrics()
    expect(text).toContain('rest_client_requests_total{code="201",method="POST",host="server:6443"} 1')
    expect(text).toContain('rest_client_requests_total{code="<error>",method="GET",host="server:6443"} 1')
    expect(text).toContain('rest_client_request_size_bytes_bucket{le="512",verb="POST",host="server:6443"} 1')
    expect(text).not.toContain('rest_client_response_size_bytes_count{verb="GET"')
  })
})
