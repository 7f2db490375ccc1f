import type { AgentSandboxClient, ClusterHealth } from '@corral/agent-sandbox-sdk'
import type { ConnectionCheck } from '@corral/protocol'

type Row = Omit<ConnectionCheck, 'ms'>

const sandboxTimeoutMs = 60_000

/** What the platform needs of its cluster, each thing by itself, and last a sandbox that is claimed, used and given back. */
export async function* connectionChecks(
  client: AgentSandboxClient,
  signal: AbortSignal,
): AsyncGenerator<ConnectionCheck> {
  const from = performance.now()
  const health = await client.healthCheck({ signal })
  const ms = performance.now() - from
  for (const row of healthRows(health)) yield { ...row, ms }
  if (health.healthy) yield await testSandbox(client, health, signal)
}

/** What a look at the cluster says, as rows for people. Pure. */
export function healthRows(health: ClusterHealth): Row[] {
  const problemOf = (...checks: string[]) => health.problems.find(({ check }) => checks.includes(check))
  const row = (check: string, title: string, isGood: boolean, detail: string, ...names: string[]): Row => {
    const problem = problemOf(...names)
    if (isGood && !problem) return { check, title, state: 'ok', detail }
    return {
      check,
      title,
      state: isGood ? 'warn' : 'fail',
      detail: problem?.message ?? detail,
      ...(problem ? { remedy: problem.remedy } : {}),
    }
  }
  const versions = Object.entries(health.crdVersions).map(([group, served]) => `${group} ${served.join(', ')}`)
  const allowed = Object.values(health.permissions)
  const pools = health.warmPools
  const isShort = pools.some(({ ready, replicas }) => ready < replicas)
  const answers = health.clusterVersion !== undefined
  const rows: Row[] = [
    row('api', 'Kubernetes API', answers, health.clusterVersion ?? health.error ?? 'no answer', 'clusterVersion'),
  ]
  if (!answers) return rows
  rows.push(
    row(
      'namespace',
      'Namespace',
      health.namespaceExists,
      `${health.namespace} ${health.namespaceExists ? 'exists' : 'is missing'}`,
      'namespaceExists',
    ),
    row(
      'kinds',
      'Agent Sandbox resources',
      health.crdRegistered,
      versions.join('; ') || 'none is served',
      'crdRegistered',
      'crdVersions',
    ),
    row(
      'controller',
      'Controller',
      health.controllerInstalled,
      health.controllerInstalled
        ? `runs${health.controllerVersion ? `, ${health.controllerVersion}` : ''}`
        : 'not found',
      'controllerInstalled',
    ),
    row(
      'permissions',
      'Permissions',
      allowed.length > 0 && allowed.every(Boolean),
      `${allowed.filter(Boolean).length} of ${allowed.length} verbs allowed`,
      'permissions',
    ),
    row(
      'runtime-classes',
      'Runtime classes',
      true,
      health.runtimeClasses.join(', ') || 'none: sandboxes use the default of the nodes',
      'runtimeClasses',
    ),
    row(
      'network-policy',
      'Network policies',
      true,
      health.networkPolicyEnforced ? 'enforced' : 'nothing tells whether they are enforced',
      'networkPolicyEnforced',
    ),
    {
      ...row(
        'pools',
        'Warm pools',
        pools.length > 0,
        pools.map(({ name, ready, replicas }) => `${name}: ${ready} of ${replicas} ready`).join('; ') ||
          'there is none',
        'warmPools',
      ),
      ...(isShort
        ? { state: 'warn' as const, remedy: 'Sandboxes are starting, or cannot: see the page Sandboxes.' }
        : {}),
    },
  )
  return rows
}

async function testSandbox(
  client: AgentSandboxClient,
  { warmPools }: ClusterHealth,
  signal: AbortSignal,
): Promise<ConnectionCheck> {
  const found = { check: 'sandbox', title: 'Test sandbox' }
  const from = performance.now()
  const pool = warmPools.find(({ replicas }) => replicas > 0) ?? warmPools[0]
  if (!pool)
    return {
      ...found,
      state: 'warn',
      detail: 'there is no pool to take one from',
      remedy: 'Create one: corral pool create default --template default',
      ms: 0,
    }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(sandboxTimeoutMs)])
  try {
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
      detail: error instanceof Error ? error.message : String(error),
      remedy: 'The page Sandboxes shows why sandboxes of this pool do not become ready.',
      ms: performance.now() - from,
    }
  }
}
