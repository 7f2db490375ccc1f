import type { AgentSandboxClient, ClusterHealth } from '@corral/agent-sandbox-sdk'
import type { ConnectionCheck, Settings } from '@corral/protocol'
import { errorCode, SelfSubjectReviews } from '@corral/resources'
import { type HealthRow, healthRows, skippedRows } from './health-rows.js'

const sandboxTimeoutMs = 60_000
const whoTimeoutMs = 5_000

/**
 * What the platform needs of a cluster, each thing by itself, and last a sandbox that is claimed, used and given back. The
 * client is closed at the end.
 */
export async function* connectionChecks(
  client: AgentSandboxClient,
  settings: Settings,
  signal: AbortSignal,
): AsyncGenerator<ConnectionCheck> {
  try {
    const from = performance.now()
    const who = whoami(client, signal)
    let health: ClusterHealth
    try {
      health = await client.healthCheck({ signal })
    } catch (error) {
      // There is no usable configuration: nothing can be asked.
      yield { ...unusable(error, settings), ms: performance.now() - from }
      const rest = [skipped('auth', 'Credentials'), ...skippedRows(), skipped('sandbox', 'Test sandbox')]
      yield* rest.map((row) => ({ ...row, ms: 0 }))
      return
    }
    const ms = performance.now() - from
    const answers = health.clusterVersion !== undefined
    for (const row of healthRows(health, settings)) {
      yield { ...row, ms }
      if (row.check === 'api') yield answers ? await who : { ...skipped('auth', 'Credentials'), ms: 0 }
    }
    if (health.healthy) yield await testSandbox(client, health, settings, signal)
    else yield { ...skipped('sandbox', 'Test sandbox'), ms: 0 }
  } finally {
    await client.close()
  }
}

const skipped = (check: string, title: string): HealthRow => ({
  check,
  title,
  state: 'skipped',
  detail: 'not looked at: it needs what is missing above',
})

function unusable(error: unknown, { context }: Settings): HealthRow {
  return {
    check: 'api',
    title: 'Kubernetes API',
    state: 'fail',
    detail: messageOf(error),
    remedy: context
      ? `Check the context "${context}" in the kubeconfig of the machine the platform runs on.`
      : 'Give the platform a kubeconfig: start it with KUBECONFIG, or write ~/.kube/config.',
    command: 'kubectl config get-contexts',
  }
}

/** Who the cluster takes us for. Reading the version needs no credentials, so that only this tells whether they are good. */
async function whoami(client: AgentSandboxClient, signal: AbortSignal): Promise<ConnectionCheck> {
  const from = performance.now()
  const found = { check: 'auth', title: 'Credentials' }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(whoTimeoutMs)])
  try {
    const kube = await client.kube()
    const { status } = await kube.create(SelfSubjectReviews, {}, { signal: limit })
    const name = status?.userInfo?.username ?? 'a user without a name'
    return { ...found, state: 'ok', detail: `accepted as ${name}`, ms: performance.now() - from }
  } catch (error) {
    const ms = performance.now() - from
    const code = errorCode(error)
    if (code === 'NotFound')
      return { ...found, state: 'warn', detail: 'this Kubernetes cannot tell who we are (older than 1.28)', ms }
    if (code === 'Unauthorized')
      return {
        ...found,
        state: 'fail',
        detail: messageOf(error),
        remedy: 'Renew the credentials of this context, such as by logging in to the cluster again.',
        command: 'kubectl auth whoami',
        ms,
      }
    return { ...found, state: 'warn', detail: messageOf(error), ms }
  }
}

async function testSandbox(
  client: AgentSandboxClient,
  { warmPools }: ClusterHealth,
  { runtime_class: runtimeClass }: Settings,
  signal: AbortSignal,
): Promise<ConnectionCheck> {
  const found = { check: 'sandbox', title: 'Test sandbox' }
  const from = performance.now()
  const limit = AbortSignal.any([signal, AbortSignal.timeout(sandboxTimeoutMs)])
  try {
    const fitting = runtimeClass === undefined ? warmPools : await poolsWith(client, warmPools, runtimeClass)
    const pool = fitting.find(({ replicas }) => replicas > 0) ?? fitting[0]
    if (!pool)
      return {
        ...found,
        state: 'fail',
        detail: runtimeClass
          ? `no pool has a template with runtimeClassName ${runtimeClass}`
          : 'there is no pool to take one from',
        remedy: 'Create a pool of sandboxes from a template.',
        command: 'corral pool create default --template default',
        ms: performance.now() - from,
      }
    await using sandbox = await client.sandboxes.create({ pool: pool.name, signal: limit })
    const readyMs = performance.now() - from
    const { exitCode } = await sandbox.exec(['/bin/true'], { signal: limit })
    const ms = performance.now() - from
    if (exitCode !== 0) return { ...found, state: 'fail', detail: `/bin/true ended with ${exitCode}`, ms }
    return { ...found, state: 'ok', detail: `claimed in ${Math.round(readyMs)} ms, ran /bin/true, given back`, ms }
  } catch (error) {
    return {
      ...found,
      state: 'fail',
      detail: messageOf(error),
      remedy: 'The page Sandboxes shows why sandboxes of this pool do not become ready.',
      ms: performance.now() - from,
    }
  }
}

async function poolsWith(
  client: AgentSandboxClient,
  pools: ClusterHealth['warmPools'],
  runtimeClass: string,
): Promise<ClusterHealth['warmPools']> {
  const found = await Promise.all(
    pools.map(async (pool) => {
      const { spec } = await client.warmPools.get(pool.name)
      const template = await client.templates.get(spec.sandboxTemplateRef.name)
      return template.spec.podTemplate.spec.runtimeClassName === runtimeClass ? [pool] : []
    }),
  )
  return found.flat()
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
