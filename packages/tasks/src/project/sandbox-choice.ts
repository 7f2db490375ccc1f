import type { KubeClient } from '@corral/kube'
import type { CreateTaskRequest } from '@corral/protocol'
import {
  type AgentTask,
  isAsStrong,
  isNotFound,
  Pods,
  SandboxTemplates,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { poolDefaults } from '../agent-task/claim.js'
import { TaskError } from '../task-error.js'

/**
 * Where a task runs that asks for a RuntimeClass: what it names itself, else the first pool whose template has the class,
 * the default one before others. Throws `RuntimeUnavailable` where there is none.
 */
export async function sandboxWithRuntime(
  client: Pick<KubeClient, 'list' | 'get'>,
  namespace: string,
  { sandbox, runtime_class_name: wanted }: Pick<CreateTaskRequest, 'sandbox' | 'runtime_class_name'>,
): Promise<CreateTaskRequest['sandbox']> {
  if (wanted === undefined || sandbox?.pool || sandbox?.template) return sandbox
  const { items } = await client.list(SandboxWarmPools, { namespace })
  const runtimes = new Map<string, string | undefined>()
  for (const { spec } of items) {
    const { name } = spec.sandboxTemplateRef
    if (!runtimes.has(name)) runtimes.set(name, await runtimeOf(client, namespace, name))
  }
  const fitting = items.filter(({ spec }) => runtimes.get(spec.sandboxTemplateRef.name) === wanted)
  const [pool] = fitting.sort(defaultFirst)
  if (pool) return { ...sandbox, pool: pool.metadata.name }
  throw new TaskError('RuntimeUnavailable', `no pool of sandboxes has the RuntimeClass "${wanted}"`, {
    hint: 'Create a template with this runtimeClassName and a pool for it (`corral pool create`), or name a template in `sandbox`.',
  })
}

function defaultFirst(one: Stored<SandboxWarmPool>, other: Stored<SandboxWarmPool>): number {
  const rank = ({ metadata }: Stored<SandboxWarmPool>): number => (metadata.name === poolDefaults.pool ? 0 : 1)
  return rank(one) - rank(other) || one.metadata.name.localeCompare(other.metadata.name)
}

async function runtimeOf(
  client: Pick<KubeClient, 'get'>,
  namespace: string,
  name: string,
): Promise<string | undefined> {
  try {
    const template = await client.get(SandboxTemplates, { namespace, name })
    return template.spec.podTemplate.spec.runtimeClassName
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** Refuses a tier that is weaker than the task asks for, and one that is not known. */
export function checkTier(minimum: CreateTaskRequest['minimum_tier'], tier: string | undefined): void {
  if (minimum === undefined || (tier !== undefined && isAsStrong(tier, minimum))) return
  if (tier !== undefined)
    throw new TaskError('IsolationTooWeak', `sandboxes run on the tier "${tier}", which is weaker than "${minimum}"`)
  throw new TaskError('IsolationTooWeak', `the tier of the sandboxes in this cluster is not known to be "${minimum}"`, {
    hint: 'In a cluster the RuntimeClass says how pods are isolated: ask for one with `runtime_class_name` instead.',
  })
}

/**
 * Throws where the sandbox a task was given is not what it asks for: a template may have changed since, and an AgentTask
 * that came past the task API was not looked at before. Nothing of the task has gone into the sandbox yet.
 */
export async function checkSandbox(
  client: Pick<KubeClient, 'get'>,
  { spec, status, metadata }: Stored<AgentTask>,
  tier: string | undefined,
): Promise<void> {
  checkTier(spec.minimumTier, tier)
  const name = status?.sandbox?.podName
  if (spec.runtimeClassName === undefined || name === undefined) return
  const pod = await client.get(Pods, { namespace: metadata.namespace ?? 'default', name })
  const runtime = pod.spec?.runtimeClassName
  if (runtime === spec.runtimeClassName) return
  throw new TaskError(
    'RuntimeUnavailable',
    `the pod of the sandbox has ${runtime ? `the RuntimeClass "${runtime}"` : 'no RuntimeClass'}, not "${spec.runtimeClassName}"`,
  )
}
