import type { KubeClient } from '@corral/kube'
import {
  type AgentTask,
  AgentTasks,
  defaultHoldSandboxSeconds,
  defaultTaskTimeoutSeconds,
  isAlreadyExists,
  type SandboxClaim,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { checksTimeMs } from '../checks/task-checks.js'
import { egressAnnotation, egressOf } from '../environment/phase-egress.js'
import { taskLimits } from '../task-state/task-limits.js'
import { taskLabel } from '../task-state/task-marks.js'
import { sandboxTrace } from '../tracing/task-spans.js'
import { traceAnnotations, traceOf } from '../tracing/trace-context.js'

export const poolDefaults: { pool: string } = { pool: 'default' }

/** Slack behind a task's own deadline before the claim's shutdown time takes the sandbox away as the last resort. */
const shutdownSlackMs = 45 * 60_000

/**
 * The claim of a task: named after it, owned by it. It carries no env, which would force a cold start; what the agent
 * needs is given to the daemon when it starts.
 */
export function claimFor(task: Stored<AgentTask>, pool: string, now: Date): SandboxClaim {
  const timeoutMs = (task.spec.timeoutSeconds ?? defaultTaskTimeoutSeconds) * 1000
  const egress = egressOf(task, 'setup')
  const holdMs = (task.spec.holdSandboxSeconds ?? defaultHoldSandboxSeconds) * 1000
  const neededMs = taskLimits.provisioningMs + timeoutMs + checksTimeMs(task) + holdMs
  // Only where the task is traced: the controllers put their spans below the one that the claim carries.
  const annotations = traceAnnotations(traceOf(task) && sandboxTrace(task))
  const shutdownTime = new Date(now.getTime() + neededMs + shutdownSlackMs)
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxClaim',
    metadata: {
      name: task.metadata.name,
      namespace: task.metadata.namespace ?? 'default',
      labels: { [taskLabel]: task.metadata.name },
      ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
      ownerReferences: [
        {
          apiVersion: AgentTasks.apiVersion,
          kind: AgentTasks.kind,
          name: task.metadata.name,
          uid: task.metadata.uid,
          controller: true,
          blockOwnerDeletion: false,
        },
      ],
    },
    spec: {
      warmPoolRef: { name: pool },
      lifecycle: { shutdownTime: `${shutdownTime.toISOString().slice(0, 19)}Z`, shutdownPolicy: 'Delete' },
      ...(egress.length > 0
        ? { additionalPodMetadata: { annotations: { [egressAnnotation]: egress.join(', ') } } }
        : {}),
    },
  }
}

/** Makes the pool of a template where there is none yet. Safe to repeat. */
export async function ensurePool(
  client: Pick<KubeClient, 'create'>,
  namespace: string,
  { name, template }: { name: string; template?: string },
): Promise<void> {
  if (!template) return
  const pool = {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxWarmPool',
    metadata: { name, namespace },
    spec: { replicas: 0, sandboxTemplateRef: { name: template } },
  } as const
  await client.create(SandboxWarmPools, pool).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
}

/** Whether the task leaves the choice of its sandbox to the platform, whose pool is made only then. */
export function namesNoPool(task: { spec: Pick<AgentTask['spec'], 'sandbox'> }): boolean {
  return !task.spec.sandbox?.pool && !task.spec.sandbox?.template
}

/** The pool a task asks for: by name, or the one kept for its template, which is made on demand with no replicas. */
export function poolOf(
  task: { spec: Pick<AgentTask['spec'], 'sandbox'> },
  fallback: string = poolDefaults.pool,
): { name: string; template?: string } {
  const { pool, template } = task.spec.sandbox ?? {}
  if (pool) return { name: pool }
  return template ? { name: `corral-${template}`, template } : { name: fallback }
}
