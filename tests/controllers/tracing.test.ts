import { defaultManagerOptions, startManager, startOtelTracer } from '@corral/controllers'
import { SandboxClaims, Sandboxes, SandboxTemplates } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type CollectedSpan, type Collector, startCollector } from '../../tools/otlp/collector.js'
import {
  claim,
  createPool,
  fullPool,
  readyClaim,
  readySandbox,
  sandbox,
  startTestCluster,
  type TestCluster,
  template,
} from './cluster.js'
import { ref } from './objects.js'

const annotation = 'opentelemetry.io/trace-context'
const trace = '0af7651916cd43dd8448eb211c80319c'
const parent = 'b7ad6b7169203331'
const context = JSON.stringify({ traceparent: `00-${trace}-${parent}-01` })

let collector: Collector
beforeEach(async () => {
  collector = await startCollector()
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await collector.close()
})

/** Runs a manager that traces, and answers what arrived at the collector once it has ended. */
async function traced(work: (cluster: TestCluster) => Promise<void>): Promise<CollectedSpan[]> {
  await using cluster = await startTestCluster()
  const { tracer, shutDown } = await startOtelTracer()
  const manager = startManager({ client: cluster.managerClient, options: defaultManagerOptions(), tracer })
  await manager.ready
  try {
    await work(cluster)
  } finally {
    await manager.stop()
    await shutDown()
  }
  return collector.spans
}

const named = (spans: readonly CollectedSpan[], name: string): CollectedSpan[] =>
  spans.filter((span) => span.name === name)

describe('traces over OTLP and gRPC', () => {
  it('show a Sandbox with its steps, under the name of upstream’s service', async () => {
    const spans = await traced(async ({ client }) => {
      const object = sandbox('box')
      const metadata = { ...object.metadata, labels: { 'agents.x-k8s.io/created-by': 'somebody' } }
      await client.create(Sandboxes, { ...object, metadata })
      await readySandbox(client, 'box')
    })
    expect(new Set(spans.map(({ service, tracer }) => `${service} ${tracer}`))).toEqual(
      new Set(['agent-sandbox-controller agent-sandbox-controller']),
    )
    const passes = named(spans, 'ReconcileSandbox')
    expect(passes[0]?.attributes).toEqual({
      'sandbox.name': 'box',
      'sandbox.namespace': 'default',
      'agents.x-k8s.io/created-by': 'unknown',
    })
    const ids = new Map(passes.map(({ spanId, traceId }) => [spanId, traceId]))
    for (const step of [...named(spans, 'reconcilePod'), ...named(spans, 'reconcilePVCs')])
      expect(ids.get(step.parentId)).toBe(step.traceId)
    const events = named(spans, 'reconcilePod').flatMap((span) => span.events)
    expect(events[0]).toEqual({
      name: 'NewPodStatusObserved',
      attributes: { 'pod.Name': 'box', 'pod.Phase': 'Pending' },
    })
    expect(events.at(-1)).toEqual({
      name: 'ExistingPodStatusObserved',
      attributes: { 'pod.Name': 'box', 'pod.Phase': 'Running' },
    })
    expect(collector.strays).toEqual([])
  })

  it('join the first pass of an object: its annotation is written once', async () => {
    let written: string | undefined
    const spans = await traced(async ({ client, writes }) => {
      await client.create(Sandboxes, sandbox('box'))
      const { metadata } = await readySandbox(client, 'box')
      written = metadata.annotations?.[annotation]
      expect(writes.filter(({ body }) => JSON.stringify(body ?? {}).includes(annotation))).toHaveLength(1)
    })
    const [first, ...later] = named(spans, 'ReconcileSandbox')
    expect(first?.parentId).toBe('')
    expect(JSON.parse(written ?? '{}')).toEqual({ traceparent: `00-${first?.traceId}-${first?.spanId}-01` })
    expect(later.length).toBeGreaterThan(0)
    for (const span of later) expect([span.traceId, span.parentId]).toEqual([first?.traceId, first?.spanId])
  })

  it.each([
    { how: 'cold', replicas: 0 },
    { how: 'warm', replicas: 1 },
  ])('join the trace a client began, claim and Sandbox alike: a $how start', async ({ replicas }) => {
    const spans = await traced(async ({ client }) => {
      await createPool(client, replicas)
      await fullPool(client, replicas)
      const object = claim('claim')
      const metadata = { ...object.metadata, annotations: { [annotation]: context } }
      await client.create(SandboxClaims, { ...object, metadata })
      const { status } = await readyClaim(client, 'claim')
      const sandboxRef = ref(status?.sandbox?.name ?? '')
      expect((await client.get(Sandboxes, sandboxRef)).metadata.annotations?.[annotation]).toBe(context)
      // No claim waits for the pass that follows, so it has low priority.
      await expect
        .poll(async () => {
          const { metadata, status: found } = await client.get(Sandboxes, sandboxRef)
          return found?.conditions?.every(({ observedGeneration }) => observedGeneration === metadata.generation)
        })
        .toBe(true)
    })
    const passes = named(spans, 'ReconcileSandboxClaim')
    expect(passes.length).toBeGreaterThan(0)
    for (const span of passes) expect([span.traceId, span.parentId]).toEqual([trace, parent])
    expect(named(spans, 'ReconcileSandbox').some((span) => span.traceId === trace && span.parentId === parent)).toBe(
      true,
    )
  })

  it('begin anew where the annotation is no context, and never write to a template', async () => {
    const spans = await traced(async ({ client }) => {
      await client.create(SandboxTemplates, template())
      const object = sandbox('box')
      await client.create(Sandboxes, {
        ...object,
        metadata: { ...object.metadata, annotations: { [annotation]: '{' } },
      })
      const { metadata } = await readySandbox(client, 'box')
      expect(metadata.annotations?.[annotation]).toBe('{')
      await expect
        .poll(async () => Object.keys((await client.get(SandboxTemplates, ref('tmpl'))).metadata.labels ?? {}).length)
        .toBe(1)
      expect((await client.get(SandboxTemplates, ref('tmpl'))).metadata.annotations).toBeUndefined()
    })
    for (const span of named(spans, 'ReconcileSandbox')) expect(span.parentId).toBe('')
    expect(named(spans, 'ReconcileSandboxTemplate').length).toBeGreaterThan(0)
  })

  it('leave no mark on objects while tracing is off', async () => {
    await using cluster = await startTestCluster()
    await cluster.startManager()
    await cluster.client.create(Sandboxes, sandbox('box'))
    expect((await readySandbox(cluster.client, 'box')).metadata.annotations?.[annotation]).toBeUndefined()
    expect(collector.spans).toEqual([])
  })
})
