/** The part of `npm run bench:cluster` that runs in namespaces of its own. */
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { type SandboxClaim, SandboxClaims, SandboxWarmPools } from '@corral/resources'
import {
  bootCluster,
  type RealCluster,
  smallValues,
  surroundings,
  version,
} from '../conformance/cluster/harness/boot.js'
import { type Cluster, openCluster } from '../conformance/cluster/harness/cluster.js'
import { helmOf } from '../conformance/cluster/steps/install.js'
import { commandTask, succeeded } from '../conformance/cluster/steps/tasks.js'
import { startUpstreamController } from '../tools/oracle/index.js'
import { progress } from './common/bench-options.js'
import { Recorder } from './common/result-file.js'
import { median, percentile } from './common/samples.js'

const root = join(import.meta.dirname, '..')
const chart = join(root, 'deploy/helm/corral')
const { values: flags } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    built: { type: 'boolean' },
    'without-gvisor': { type: 'string' },
  },
})
const rounds = flags.full ? 30 : 8
const namespace = 'corral'

const recorder = new Recorder('cluster', { isFull: flags.full, only: new Set(), withoutPeers: false })
const real = await bootCluster({ hasGvisor: false })
try {
  await measure(real)
} finally {
  const left = await real.stop()
  if (left.length > 0) recorder.note(`left behind: ${left.join('; ')}`)
}
recorder.finish()

async function measure({ plane, helm: helmProgram, facts }: RealCluster): Promise<void> {
  Object.assign(recorder.versions, facts)
  const cluster = openCluster({
    kubeconfig: plane.kubeconfig,
    directory: plane.directory,
    namespace,
    image: `corral:${version}`,
  })
  const helm = helmOf(helmProgram, cluster)
  const client = kubeClientFromConfig(await loadKubeConfig({ path: plane.kubeconfig }))
  try {
    await cluster.apply(...surroundings(plane))
    const values = join(plane.directory, 'values.json')
    writeFileSync(values, JSON.stringify(smallValues('http://127.0.0.1:1')))
    await cluster.kubectl('create', 'namespace', namespace)
    const install = ['corral', chart, '--values', values, '--wait', '--timeout', '8m']
    const installMs = await timed(() => helm('install', ...install))
    recorder.row({
      measure: 'chart installed by Helm, from the command to ready, images present',
      unit: 's',
      values: { corral: installMs / 1000 },
      required: '<= 10',
      isMet: installMs <= 10_000,
    })
    await tasks(cluster, client)
    const ours = await claims(client, 'corral')
    await helm('upgrade', ...install, '--set', 'controllers.enabled=false')
    const upstream = await startUpstreamController({ kubeconfig: plane.kubeconfig, crds: false })
    recorder.versions['agent-sandbox'] = upstream.binary.version
    try {
      const theirs = await claims(client, 'upstream')
      recorder.row({
        measure: 'claim to Ready from a warm pool, p50',
        unit: 'ms',
        values: { corral: median(ours), upstream: median(theirs) },
        ratio: median(ours) / median(theirs),
        required: 'not above upstream',
        isMet: median(ours) <= median(theirs),
      })
    } finally {
      await upstream.stop()
    }
    for (const name of ['corral', 'corral-daemon']) {
      const megabytes = statSync(join(root, 'build/images', `${name}.tar`)).size / 1e6
      const judged = name === 'corral-daemon' ? { required: '<= 120', isMet: megabytes <= 120 } : {}
      recorder.row({ measure: `image ${name}, compressed`, unit: 'MB', values: { corral: megabytes }, ...judged })
    }
  } finally {
    await cluster.close()
    await client.close()
  }
}

/** What a task costs besides its agent, which does nothing here. */
async function tasks(cluster: Cluster, client: KubeClient): Promise<void> {
  await cluster.connect()
  const repo = await cluster.repository()
  const times: number[] = []
  for (let round = -1; round < rounds; round += 1) {
    await untilFull(client)
    const ms = await timed(async () => succeeded(await cluster.api.run(commandTask(repo, 'echo x > x'))))
    if (round >= 0) times.push(ms)
    progress(`task ${round + 1} of ${rounds}: ${Math.round(ms)} ms`)
  }
  recorder.samples('warm task', times)
  recorder.row({
    measure: 'warm task with an agent that does nothing, request to end, p50',
    unit: 's',
    values: { corral: median(times) / 1000 },
    required: '<= 2',
    isMet: median(times) <= 2_000,
  })
  recorder.row({ measure: 'the same, p90', unit: 's', values: { corral: percentile(times, 0.9) / 1000 } })
}

async function claims(client: KubeClient, subject: string): Promise<number[]> {
  const times: number[] = []
  for (let round = -1; round < rounds; round += 1) {
    await untilFull(client)
    const name = `bench-${subject}-${round + 1}`
    const claim: SandboxClaim = {
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxClaim',
      metadata: { name, namespace },
      spec: { warmPoolRef: { name: 'default' } },
    }
    const ms = await timed(async () => {
      await client.create(SandboxClaims, claim)
      await until(async () => {
        const { status } = await client.get(SandboxClaims, { namespace, name })
        return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false
      })
    })
    if (round >= 0) times.push(ms)
    progress(`claim ${round + 1} of ${rounds} by ${subject}: ${Math.round(ms)} ms`)
    await client.delete(SandboxClaims, { namespace, name })
  }
  recorder.samples(`claim to Ready, ${subject}`, times)
  return times
}

/** Both controllers begin each round with a full pool. */
async function untilFull(client: KubeClient): Promise<void> {
  await until(async () => {
    const { spec, status } = await client.get(SandboxWarmPools, { namespace, name: 'default' })
    return (status?.readyReplicas ?? 0) >= (spec.replicas ?? 1)
  })
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + 240_000
  while (!(await isSo())) {
    if (Date.now() > deadlineMs) throw new Error('not within four minutes')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}
