import { parseManagerOptions, startManager, startOtelTracer } from '@corral/controllers'
import { SandboxClaims, Sandboxes } from '@corral/resources'
import { describe, expect, it, vi } from 'vitest'
import { startCollector } from '../../tools/otlp/collector.js'
import { claim, createPool, fullPool, readyClaim, readySandbox, sandbox, startTestCluster } from './cluster.js'
import { ref } from './objects.js'

/** What the flags of `corral controller` make of the manager, without its ports and its election. */
function optionsOf(...flags: string[]): Parameters<typeof startManager>[0]['options'] {
  const parsed = parseManagerOptions([...flags, '--leader-elect=false'])
  if ('error' in parsed) throw new Error(parsed.error)
  const { endpoints: _ports, leaderElection: _lease, ...options } = parsed.command.options
  return options
}

/** The queues of a running manager that have ever taken a key, by its metrics: one for each controller. */
async function queuesOf(manager: ReturnType<typeof startManager>): Promise<string[]> {
  const text = await manager.metrics.getSingleMetricAsString('workqueue_adds_total')
  return [...text.matchAll(/name="([^"]+)"/g)].map(([, name = '']) => name).sort()
}

describe('the start of the manager', () => {
  it('S3-10: Sandboxes are looked after always; claims, templates and pools only with --extensions', async () => {
    await using cluster = await startTestCluster()
    const core = startManager({ client: cluster.managerClient, options: optionsOf() })
    await core.ready
    await createPool(cluster.client, 1)
    await cluster.client.create(SandboxClaims, claim('early'))
    await cluster.client.create(Sandboxes, sandbox('box'))
    await readySandbox(cluster.client, 'box')
    expect(await queuesOf(core)).toEqual(['sandbox'])
    expect((await cluster.client.get(SandboxClaims, ref('early'))).status).toBeUndefined()
    await core.stop()

    const whole = startManager({ client: cluster.managerClient, options: optionsOf('--extensions') })
    await whole.ready
    expect((await readyClaim(cluster.client, 'early')).status?.sandbox?.name).toBeDefined()
    expect(await queuesOf(whole)).toEqual(['sandbox', 'sandboxclaim', 'sandboxtemplate', 'sandboxwarmpool'])
    await whole.stop()
  })

  it('S3-U5: spans are sent with --enable-tracing, and without it the same work sends none', async () => {
    const collector = await startCollector()
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
    try {
      const work = async (...flags: string[]): Promise<string[]> => {
        await using cluster = await startTestCluster()
        const options = optionsOf(...flags)
        const tracing = options.tracing ? await startOtelTracer() : undefined
        const manager = startManager({
          client: cluster.managerClient,
          options,
          ...(tracing ? { tracer: tracing.tracer } : {}),
        })
        await manager.ready
        await cluster.client.create(Sandboxes, sandbox('box'))
        await readySandbox(cluster.client, 'box')
        await manager.stop()
        await tracing?.shutDown()
        return collector.spans.map(({ name }) => name)
      }
      expect(await work()).toEqual([])
      expect(await work('--enable-tracing')).toContain('ReconcileSandbox')
    } finally {
      vi.unstubAllEnvs()
      await collector.close()
    }
  })

  it('S3-U11: the controllers share one queue of warm Sandboxes: each goes to one claim, none is made beside the pool', async () => {
    await using cluster = await startTestCluster()
    const manager = startManager({ client: cluster.managerClient, options: optionsOf('--extensions') })
    await manager.ready
    await createPool(cluster.client, 3)
    await fullPool(cluster.client, 3)
    const warm = (await cluster.client.list(Sandboxes)).items.map(({ metadata }) => metadata.name)
    const names = ['one', 'two', 'three']
    await Promise.all(names.map((name) => cluster.client.create(SandboxClaims, claim(name))))
    const claims = await Promise.all(names.map((name) => readyClaim(cluster.client, name)))
    expect(claims.map(({ status }) => status?.sandbox?.name).sort()).toEqual(warm.sort())
    await manager.stop()
  })
})
