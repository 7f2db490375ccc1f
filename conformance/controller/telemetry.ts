/**
 * Metrics and traces of our manager beside upstream's: the same small day on a real kube-apiserver, then families, types,
 * labels and buckets of `/metrics` and the shape of the spans. `npm run conformance:telemetry`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { SandboxClaims, Sandboxes, SandboxTemplates, SandboxWarmPools } from '@corral/resources'
import { findGo, installUpstreamCrds, startControlPlane, startUpstreamController } from '../../tools/oracle/index.js'
import { type CollectedSpan, startCollector } from '../../tools/otlp/collector.js'
import { startActivity } from './harness/activity.js'
import { type MetricFamily, metricFamilies } from './harness/metric-families.js'
import { installOurManager } from './harness/our-manager.js'
import { Scene } from './harness/scene.js'
import { startScriptedNode } from './harness/scripted-node.js'
import { ensureNamespace } from './harness/service-account.js'
import { spanShapes } from './harness/span-shapes.js'
import { unlikeUpstream } from './harness/telemetry-differences.js'
import { claim, pool, sandbox, template } from './scenarios/objects.js'

const { values: options } = parseArgs({ options: { 'write-list': { type: 'boolean', default: false } } })
const listFile = join(import.meta.dirname, 'upstream-metrics.json')
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
process.exitCode = await main()

interface Telemetry {
  readonly families: ReadonlyMap<string, MetricFamily>
  readonly spans: readonly string[]
}

async function main(): Promise<number> {
  if (!(await findGo())) {
    process.stderr.write('conformance: Go is not installed, so there is nothing to compare with; skipped\n')
    return 0
  }
  const theirs = await observe('upstream')
  const ours = await observe('ours')
  const directory = join(import.meta.dirname, '../results')
  mkdirSync(directory, { recursive: true })
  const plain = ({ families, spans }: Telemetry): object => ({ families: [...families.values()], spans })
  const results = { upstream: plain(theirs), ours: plain(ours) }
  writeFileSync(join(directory, 'telemetry.json'), `${JSON.stringify(results, null, 1)}\n`)
  // What our tests compare with where there is no upstream: everything but the figures of its language.
  const kept = [...theirs.families.values()].filter(({ name }) => !name.startsWith('go_'))
  if (options['write-list'])
    writeFileSync(listFile, `[\n${kept.map((family) => `  ${JSON.stringify(family)}`).join(',\n')}\n]\n`)
  const { unexplained, explained } = unlikeUpstream(ours, theirs)
  for (const line of explained) process.stdout.write(`meant: ${line}\n`)
  for (const line of unexplained) process.stdout.write(`NO  ${line}\n`)
  process.stdout.write(
    `${theirs.families.size} families of upstream, ${unexplained.length} differences without a reason\n`,
  )
  return unexplained.length > 0 ? 1 : 0
}

async function observe(whose: 'ours' | 'upstream'): Promise<Telemetry> {
  const collector = await startCollector()
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = collector.url // both managers read the standard variables
  const plane = await startControlPlane()
  const client = kubeClientFromConfig(await loadKubeConfig({ path: plane.kubeconfig }))
  try {
    const start = whose === 'ours' ? await installOurManager(plane, client) : undefined
    if (!start) await installUpstreamCrds(client)
    const node = await startScriptedNode(client)
    const activity = await startActivity(client)
    const flags = ['--enable-tracing', '--kube-api-qps=500', '--kube-api-burst=500']
    const election = ['--leader-elect=true', '--leader-election-namespace=default']
    const manager = start
      ? await start(flags)
      : await startUpstreamController({ kubeconfig: plane.kubeconfig, crds: false, flags: [...election, ...flags] })
    try {
      await ensureNamespace(client, 'day')
      const signal = AbortSignal.timeout(60_000)
      const scene = new Scene({ client, node, activity, namespace: 'day', quietMs: 500, signal })
      await day(scene)
      await scene.rest()
      const text = await (await fetch(manager.metricsUrl)).text()
      await pause(6_000) // spans are sent in batches, five seconds apart
      return { families: metricFamilies(text), spans: spanShapes(collector.spans as CollectedSpan[]) }
    } finally {
      await manager.stop()
      await node.stop()
      await activity.stop()
    }
  } finally {
    await client.close()
    await plane.stop()
    await collector.close()
  }
}

/** A little of everything, so that every family has a series. */
async function day(scene: Scene): Promise<void> {
  const stamps = {
    'agents.x-k8s.io/webhook-first-observed-at': new Date().toISOString(),
    'agents.x-k8s.io/client-first-requested-at': new Date().toISOString(),
  }
  await scene.create(SandboxTemplates, template())
  await scene.create(SandboxWarmPools, pool('pool', 1))
  await scene.fullPool('pool', 1)
  await scene.create(
    SandboxClaims,
    claim('warm', {}, { annotations: stamps, labels: { 'agents.x-k8s.io/created-by': 'go-client' } }),
  )
  await scene.readyClaim('warm')
  await scene.create(SandboxWarmPools, pool('none', 0))
  await scene.create(SandboxClaims, claim('cold', { warmPoolRef: { name: 'none' } }, { annotations: stamps }))
  await scene.readyClaim('cold')
  await scene.create(Sandboxes, sandbox('alone', { service: true }))
  await scene.readySandbox('alone')
  await scene.create(SandboxClaims, claim('lost', { warmPoolRef: { name: 'nowhere' } }))
  await scene.reason(SandboxClaims, 'lost', 'WarmPoolNotFound')
}
