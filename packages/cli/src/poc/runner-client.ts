import { type AgentSandboxClient, DaemonClient } from '@corral/agent-sandbox-sdk'
import { CorralError } from '@corral/protocol'
import type { SandboxClaim } from '@corral/resources'

export interface RunnerTask {
  taskId: string
  message: string
}

/** Makes sure a pool with no replicas exists for the template: a claim needs one, and 0 means a cold start every time. */
export async function ensureColdPool(client: AgentSandboxClient, template: string, namespace: string): Promise<string> {
  const name = `shadow-pool-${template}`
  if (await client.warmPools.exists(name, { namespace })) return name
  await client.warmPools
    .create({
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxWarmPool',
      metadata: { name, namespace },
      spec: { replicas: 0, sandboxTemplateRef: { name: template } },
    })
    .catch((error: { code?: string }) => {
      if (error.code !== 'AlreadyExists') throw error
    })
  return name
}

export function runnerClaim(options: {
  name: string
  namespace: string
  pool: string
  shutdownTime: Date
}): SandboxClaim {
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxClaim',
    metadata: { name: options.name, namespace: options.namespace },
    spec: {
      warmPoolRef: { name: options.pool },
      lifecycle: { shutdownTime: `${options.shutdownTime.toISOString().slice(0, 19)}Z`, shutdownPolicy: 'Retain' },
    },
  }
}

/**
 * Whether what failed is that time is up. The claim's shutdown time is the command's own deadline: on a busy machine the
 * controller notices it first, and the deadline is still what a person must hear of.
 */
export function isDeadline(error: unknown, signal: AbortSignal): boolean {
  const { details } = error as { details?: { reason?: unknown } }
  return signal.aborted || details?.reason === 'ClaimExpired'
}

export const runnerRetry: { attempts: number; pauseMs: number } = { attempts: 5, pauseMs: 2_000 }

/**
 * Hands the runner its task, over the API's port-forward (`local`) or by the sandbox's DNS name. Tries five times, two
 * seconds apart; a runner that already has the task counts as done.
 */
export async function sendRunnerTask(
  client: AgentSandboxClient,
  sandbox: { name: string; namespace: string; serviceFQDN: string | undefined },
  task: RunnerTask,
  options: {
    local: boolean
    signal: AbortSignal
    onAttempt: (attempt: number, error: unknown) => void
    pauseMs?: number
  },
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await sendOnce(client, sandbox, task, options)
      return
    } catch (error) {
      if (error instanceof CorralError && error.code === 'TaskAlreadyAccepted') return
      options.onAttempt(attempt, error)
      if (attempt === runnerRetry.attempts || options.signal.aborted) throw error
      await pause(options.pauseMs ?? runnerRetry.pauseMs, options.signal)
    }
  }
}

async function sendOnce(
  client: AgentSandboxClient,
  sandbox: { name: string; namespace: string; serviceFQDN: string | undefined },
  task: RunnerTask,
  { local, signal }: { local: boolean; signal: AbortSignal },
): Promise<void> {
  const body = { taskID: task.taskId, message: task.message }
  if (!local) {
    if (!sandbox.serviceFQDN)
      throw new Error(`sandbox ${sandbox.name} has no Service: set "service: true" in the template, or use --local`)
    await new DaemonClient({ fetch, baseUrl: `http://${sandbox.serviceFQDN}:8888` }).sendTask(body, { signal })
    return
  }
  const connection = await client.connect(sandbox, { signal })
  try {
    await new DaemonClient({ fetch: connection.fetch }).sendTask(body, { signal })
  } finally {
    await connection.close()
  }
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        reject(signal.reason as Error)
      },
      { once: true },
    )
  })
}

/** Waits until the claim says its pod finished, by watch; answers the reason. */
export async function untilFinished(
  client: AgentSandboxClient,
  name: string,
  namespace: string,
  signal: AbortSignal,
): Promise<string> {
  for await (const { type, object } of client.claims.watch({
    namespace,
    fieldSelector: `metadata.name=${name}`,
    signal,
  })) {
    if (type === 'DELETED') throw new Error(`claim ${name} was deleted while its task ran`)
    const finished = object.status?.conditions?.find((condition) => condition.type === 'Finished')
    if (finished?.status === 'True') return finished.reason
  }
  throw new Error('the watch ended')
}
