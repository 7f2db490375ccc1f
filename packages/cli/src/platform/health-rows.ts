import type { ClusterHealth } from '@corral/agent-sandbox-sdk'
import type { ConnectionCheck, Settings } from '@corral/protocol'

export type HealthRow = Omit<ConnectionCheck, 'ms'>

const titles = {
  namespace: 'Namespace',
  kinds: 'Agent Sandbox resources',
  controller: 'Controller',
  permissions: 'Permissions',
  'runtime-class': 'Runtime class',
  'network-policy': 'Network policies',
  pools: 'Warm pools',
} as const

/** The rows of a cluster that does not answer: nothing is known about the rest, which is no failure of each. */
export const skippedRows = (): HealthRow[] =>
  Object.entries(titles).map(([check, title]) => ({
    check,
    title,
    state: 'skipped',
    detail: 'not looked at: the Kubernetes API does not answer',
  }))

type Row = (check: keyof typeof titles, isGood: boolean, detail: string, ...names: string[]) => HealthRow

/** What a look at the cluster says, as rows for people. Pure. */
export function healthRows(
  health: ClusterHealth,
  { runtime_class: runtimeClass, context }: Pick<Settings, 'runtime_class' | 'context'>,
): HealthRow[] {
  const row: Row = (check, isGood, detail, ...names) => {
    const problem = health.problems.find((one) => names.includes(one.check))
    const title = titles[check]
    if (isGood && !problem) return { check, title, state: 'ok', detail }
    return {
      check,
      title,
      state: isGood ? 'warn' : 'fail',
      detail: problem?.message ?? detail,
      ...(problem ? { remedy: problem.remedy } : {}),
    }
  }
  if (health.clusterVersion === undefined) {
    const problem = health.problems.find(({ check }) => check === 'clusterVersion')
    const api: HealthRow = {
      check: 'api',
      title: 'Kubernetes API',
      state: 'fail',
      detail: problem?.message ?? health.error ?? 'no answer',
      remedy: problem?.remedy ?? 'Check that the cluster runs and that the kubeconfig names it.',
      command: `kubectl ${context ? `--context ${context} ` : ''}version`,
    }
    return [api, ...skippedRows()]
  }
  const versions = Object.entries(health.crdVersions).map(([group, served]) => `${group} ${served.join(', ')}`)
  const allowed = Object.values(health.permissions)
  return [
    { check: 'api', title: 'Kubernetes API', state: 'ok', detail: health.clusterVersion },
    withCommand(
      row(
        'namespace',
        health.namespaceExists,
        `${health.namespace} ${health.namespaceExists ? 'exists' : 'is missing'}`,
        'namespaceExists',
      ),
      `kubectl create namespace ${health.namespace}`,
    ),
    withCommand(
      row('kinds', health.crdRegistered, versions.join('; ') || 'none is served', 'crdRegistered', 'crdVersions'),
      'corral install --dry-run',
    ),
    withCommand(
      row('controller', health.controllerInstalled, controllerWords(health), 'controllerInstalled'),
      'corral install --dry-run',
    ),
    withCommand(
      row(
        'permissions',
        allowed.length > 0 && allowed.every(Boolean),
        `${allowed.filter(Boolean).length} of ${allowed.length} verbs allowed`,
        'permissions',
      ),
      `kubectl auth can-i --list --namespace ${health.namespace}`,
    ),
    runtimeRow(health, runtimeClass),
    policyRow(health, row),
    poolRow(health, row),
  ]
}

/** What may only not be looked at needs no command that makes it. */
const withCommand = (row: HealthRow, command: string): HealthRow => (row.state === 'fail' ? { ...row, command } : row)

function controllerWords({ controllerInstalled, controllerVersion }: ClusterHealth): string {
  if (!controllerInstalled) return 'not found'
  return `runs${controllerVersion ? `, ${controllerVersion}` : ''}`
}

function runtimeRow({ runtimeClasses, problems }: ClusterHealth, wanted: string | undefined): HealthRow {
  const row = { check: 'runtime-class', title: titles['runtime-class'] }
  const listed = runtimeClasses.join(', ')
  if (wanted === undefined)
    return { ...row, state: 'ok', detail: `the default of the nodes${listed ? `; there are also ${listed}` : ''}` }
  if (runtimeClasses.includes(wanted)) return { ...row, state: 'ok', detail: wanted }
  const unread = problems.find(({ check }) => check === 'runtimeClasses')
  if (unread) return { ...row, state: 'warn', detail: `${wanted}: ${unread.message}`, remedy: unread.remedy }
  return {
    ...row,
    state: 'fail',
    detail: `there is no RuntimeClass "${wanted}"${listed ? `; there are ${listed}` : ''}`,
    remedy: `Install its runtime on the nodes and create RuntimeClass "${wanted}", or choose the default.`,
    command: 'kubectl get runtimeclasses',
  }
}

/** Many networks take policies and enforce none: not to know is no green row. */
function policyRow({ networkPolicyEnforced }: ClusterHealth, row: Row): HealthRow {
  const found = row('network-policy', true, 'enforced', 'networkPolicyEnforced')
  if (networkPolicyEnforced) return found
  return {
    ...found,
    state: 'warn',
    detail: found.state === 'ok' ? 'nothing tells whether they are enforced' : found.detail,
    remedy: 'Where sandboxes run code you do not trust, test it: docs/cluster.md says how.',
    command: 'scripts/cluster/check-policies.sh',
  }
}

function poolRow({ warmPools }: ClusterHealth, row: Row): HealthRow {
  const words = warmPools.map(({ name, ready, replicas }) => `${name}: ${ready} of ${replicas} ready`).join('; ')
  const found = row('pools', warmPools.length > 0, words || 'there is none', 'warmPools')
  if (warmPools.length === 0)
    return {
      remedy: 'Create a pool, so that tasks find a sandbox.',
      command: 'corral pool create default --template default',
      ...found,
    }
  if (warmPools.every(({ ready, replicas }) => ready >= replicas)) return found
  return { ...found, state: 'warn', remedy: 'Sandboxes are starting, or cannot: see the page Sandboxes.' }
}
