import { join } from 'node:path'
import { connectPod } from '@corral/agent-sandbox-sdk'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { Pods, SandboxClaims, type SandboxTemplate, SandboxTemplates, SandboxWarmPools } from '@corral/resources'
import { progress } from './common/bench-options.js'
import { ClaimWatch } from './common/claim-watch.js'
import { until } from './common/until.js'
import { prepareRawBwrap } from './raw-bwrap.js'

const namespace = 'corral'
const warmReplicas = 3
/** The kernel takes down namespaces and mounts of what ran before in the background; nothing is measured meanwhile. */
const restMs = 150

/** Milliseconds from the create call of a claim, by what came of it. */
export interface SandboxStarts {
  coldExecMs: number[]
  warmExecMs: number[]
  /** Of the same claims: until the watch said Ready. */
  coldReadyMs: number[]
  warmReadyMs: number[]
  coldDaemonMs: number[]
  warmDaemonMs: number[]
  rawBwrapMs: number[]
}

/** Starts sandboxes one after the other, over TLS as any client would, with raw bwrap in between. */
export async function measureSandboxStarts(options: {
  kubeconfig: string
  directory: string
  rounds: number
}): Promise<SandboxStarts> {
  const client = kubeClientFromConfig(await loadKubeConfig({ path: options.kubeconfig }))
  const claims = new ClaimWatch(client, namespace)
  const bwrap = prepareRawBwrap(join(options.directory, 'raw-bwrap'))
  const found: SandboxStarts = {
    coldExecMs: [],
    warmExecMs: [],
    coldReadyMs: [],
    warmReadyMs: [],
    coldDaemonMs: [],
    warmDaemonMs: [],
    rawBwrapMs: [],
  }
  try {
    await createPools(client)
    await claims.synced
    for (let round = -1; round < options.rounds; round += 1) {
      if (round % 5 === 0) progress(`sandboxes, round ${round + 1} of ${options.rounds}`)
      await platformAtRest(client)
      const rawMs = await bwrap()
      const cold = await claimAndExec(client, claims, `cold-${round + 1}`, 'plain-cold')
      const warm = await claimAndExec(client, claims, `warm-${round + 1}`, 'plain-warm')
      const coldDaemonMs = await claimAndGreet(client, claims, `cold-daemon-${round + 1}`, 'daemon-cold')
      const warmDaemonMs = await claimAndGreet(client, claims, `warm-daemon-${round + 1}`, 'default')
      if (round < 0) continue // warms up what users have warm too: code, pages, connections
      found.rawBwrapMs.push(rawMs)
      found.coldExecMs.push(cold.execMs)
      found.coldReadyMs.push(cold.readyMs)
      found.warmExecMs.push(warm.execMs)
      found.warmReadyMs.push(warm.readyMs)
      found.coldDaemonMs.push(coldDaemonMs)
      found.warmDaemonMs.push(warmDaemonMs)
    }
  } finally {
    await claims.stop()
    await client.close()
  }
  return found
}

const plainTemplate: SandboxTemplate = {
  metadata: { name: 'plain', namespace },
  spec: {
    podTemplate: {
      spec: {
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'main', image: 'debian', command: ['/bin/sleep', 'infinity'] }],
      },
    },
  },
}

async function createPools(client: KubeClient): Promise<void> {
  const pool = (name: string, template: string, replicas: number) =>
    client.create(SandboxWarmPools, {
      metadata: { name, namespace },
      spec: { replicas, sandboxTemplateRef: { name: template } },
    })
  await client.create(SandboxTemplates, plainTemplate)
  await pool('plain-cold', 'plain', 0)
  await pool('plain-warm', 'plain', warmReplicas)
  await pool('daemon-cold', 'default', 0)
}

/** A claim on a platform at rest, no sandbox starting beside it; it is removed before this resolves. */
async function withClaim<T>(
  client: KubeClient,
  claims: ClaimWatch,
  name: string,
  pool: string,
  use: (sandbox: string, startedAt: number) => Promise<T>,
): Promise<T> {
  await platformAtRest(client)
  const startedAt = performance.now()
  const creating = client.create(SandboxClaims, {
    metadata: { name, namespace },
    spec: { warmPoolRef: { name: pool } },
  })
  const [sandbox] = await Promise.all([claims.ready(name), creating])
  const result = await use(sandbox, startedAt)
  await client.delete(SandboxClaims, { name, namespace })
  await until(
    `the end of ${sandbox}`,
    async () => (await client.find(Pods, { name: sandbox, namespace })) === undefined,
  )
  return result
}

async function platformAtRest(client: KubeClient): Promise<void> {
  await until('every pool full', async () => {
    const { items } = await client.list(SandboxWarmPools, { namespace })
    return items.every(({ spec, status }) => (status?.readyReplicas ?? 0) === spec.replicas)
  })
  await new Promise((resolve) => setTimeout(resolve, restMs))
}

function claimAndExec(
  client: KubeClient,
  claims: ClaimWatch,
  name: string,
  pool: string,
): Promise<{ readyMs: number; execMs: number }> {
  return withClaim(client, claims, name, pool, async (sandbox, startedAt) => {
    const readyMs = performance.now() - startedAt
    const process = await client.exec({ name: sandbox, namespace }, { command: ['/bin/echo', 'ready'] })
    let execMs = Number.NaN
    for await (const _ of process.stdout) execMs = Number.isNaN(execMs) ? performance.now() - startedAt : execMs
    const exit = await process.exited
    if (Number.isNaN(execMs)) throw new Error(`nothing came from exec in ${sandbox}: ${JSON.stringify(exit)}`)
    return { readyMs, execMs }
  })
}

function claimAndGreet(client: KubeClient, claims: ClaimWatch, name: string, pool: string): Promise<number> {
  return withClaim(client, claims, name, pool, async (sandbox, startedAt) => {
    const connection = connectPod(client, { name: sandbox, namespace })
    try {
      const answer = await connection.fetch('http://daemon/healthz')
      if (!answer.ok) throw new Error(`the daemon of ${sandbox} answered ${answer.status}`)
      await answer.text()
      return performance.now() - startedAt
    } finally {
      await connection.close()
    }
  })
}
