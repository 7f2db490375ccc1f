import type { CompleteTaskRequest, CreateTaskRequest } from '@corral/protocol'
import { type AgentTask, projectLabel, type Stored } from '@corral/resources'
import { agentChoiceFrom } from './agent-spec.js'
import { checksRequest, checksSpec } from './checks/check-request.js'
import { acceptedAtAnnotation } from './task-page.js'
import { groupLabel } from './task-state/group.js'
import { taskFinalizer } from './task-state/task-marks.js'
import { parseTraceparent, traceAnnotations } from './tracing/trace-context.js'

/** What a task has beside its request. */
export interface TaskIdentity {
  name: string
  namespace: string
  agent: AgentTask['spec']['agent']
  fingerprint: string | undefined
  retryOf: string | undefined
  retry: AgentTask['spec']['retry'] | undefined
  continues: AgentTask['spec']['continues'] | undefined
  /** The attempts the task is one of. */
  group?: AgentTask['spec']['group'] | undefined
  /** See `acceptedAtAnnotation`. */
  acceptedAt: string
  /** The span of the request, where it carried a `traceparent`. */
  traceparent?: string | undefined
}

/** The object a request becomes. */
export function taskFrom(request: CompleteTaskRequest, identity: TaskIdentity): AgentTask {
  const { limits } = request
  const labels = {
    ...(request.labels ? ownLabels(request.labels) : {}),
    ...(request.project ? { [projectLabel]: request.project } : {}),
    ...(identity.group ? { [groupLabel]: identity.group.name } : {}),
  }
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      name: identity.name,
      namespace: identity.namespace,
      finalizers: [taskFinalizer],
      annotations: {
        [acceptedAtAnnotation]: identity.acceptedAt,
        ...traceAnnotations(parseTraceparent(identity.traceparent)),
      },
      ...(Object.keys(labels).length > 0 ? { labels } : {}),
    },
    spec: {
      repository: {
        url: request.repo,
        ...(request.submodules === undefined ? {} : { submodules: submoduleDepths[String(request.submodules)]! }),
        ...(request.lfs ? { lfs: true } : {}),
      },
      prompt: request.task,
      agent: identity.agent,
      ...(request.instructions ? { instructions: request.instructions } : {}),
      ...(request.mcp_servers ? { mcpServers: request.mcp_servers.map(definedOnly) } : {}),
      ...(limits
        ? {
            limits: {
              ...(limits.max_tokens ? { maxTokens: limits.max_tokens } : {}),
              ...(limits.max_cost_usd ? { maxCostUsd: limits.max_cost_usd } : {}),
            },
          }
        : {}),
      ...(request.base_branch ? { baseBranch: request.base_branch } : {}),
      ...(request.new_branch ? { newBranch: request.new_branch } : {}),
      ...(request.timeout_seconds ? { timeoutSeconds: request.timeout_seconds } : {}),
      ...(request.priority === undefined ? {} : { priority: request.priority }),
      ...(request.files
        ? {
            files: request.files.map(({ mode, ...file }) => ({
              ...definedOnly(file),
              ...(mode ? { mode: Number.parseInt(mode, 8) } : {}),
            })),
          }
        : {}),
      ...(request.setup ? { setup: request.setup } : {}),
      ...(request.part ? { part: request.part } : {}),
      ...(request.setup_timeout_seconds ? { setupTimeoutSeconds: request.setup_timeout_seconds } : {}),
      ...(request.checkpoint_seconds === undefined ? {} : { checkpointSeconds: request.checkpoint_seconds }),
      ...checksSpec(request),
      ...(request.artifacts ? { artifacts: request.artifacts } : {}),
      ...(request.egress ? { egress: request.egress } : {}),
      ...(request.setup_egress ? { setupEgress: request.setup_egress } : {}),
      ...(request.sandbox ? { sandbox: definedOnly(request.sandbox) } : {}),
      ...(request.keep_sandbox ? { keepSandbox: true } : {}),
      ...(request.mode ? { mode: request.mode } : {}),
      ...(request.hold_sandbox_seconds === undefined ? {} : { holdSandboxSeconds: request.hold_sandbox_seconds }),
      ...(request.plan_expiry_seconds ? { planExpirySeconds: request.plan_expiry_seconds } : {}),
      ...(request.ask ? { ask: request.ask } : {}),
      ...(request.question_expiry_seconds ? { questionExpirySeconds: request.question_expiry_seconds } : {}),
      ...(request.project ? { project: request.project } : {}),
      ...(request.author ? { author: request.author } : {}),
      ...(request.committer ? { committer: request.committer } : {}),
      ...(request.sign === undefined ? {} : { sign: request.sign }),
      ...(request.environment_file ? { environmentFile: request.environment_file } : {}),
      ...(request.use_snapshot === false ? { useSnapshot: false } : {}),
      ...(request.runtime_class_name ? { runtimeClassName: request.runtime_class_name } : {}),
      ...(request.minimum_tier ? { minimumTier: request.minimum_tier } : {}),
      ...(identity.retryOf ? { retryOf: identity.retryOf } : {}),
      ...(identity.retry ? { retry: identity.retry } : {}),
      ...(identity.continues ? { continues: identity.continues } : {}),
      ...(identity.group ? { group: identity.group } : {}),
      ...(identity.fingerprint ? { idempotencyKey: identity.fingerprint } : {}),
    },
  }
}

/** The request that made a task: a retry asks for the same, on a branch of its own unless one was named. */
export function requestFrom({ spec, metadata }: Stored<AgentTask>): CompleteTaskRequest {
  const { limits } = spec
  return {
    repo: spec.repository.url,
    ...(spec.repository.submodules ? { submodules: submoduleWords[spec.repository.submodules] } : {}),
    ...(spec.repository.lfs ? { lfs: true } : {}),
    task: spec.prompt,
    agent: agentChoiceFrom(spec.agent),
    ...(spec.instructions ? { instructions: spec.instructions } : {}),
    ...(spec.mcpServers ? { mcp_servers: spec.mcpServers as CreateTaskRequest['mcp_servers'] } : {}),
    ...(limits
      ? {
          limits: {
            ...(limits.maxTokens ? { max_tokens: limits.maxTokens } : {}),
            ...(limits.maxCostUsd ? { max_cost_usd: limits.maxCostUsd } : {}),
          },
        }
      : {}),
    ...(spec.baseBranch ? { base_branch: spec.baseBranch } : {}),
    ...(spec.newBranch ? { new_branch: spec.newBranch } : {}),
    ...(spec.timeoutSeconds ? { timeout_seconds: spec.timeoutSeconds } : {}),
    ...(spec.priority === undefined ? {} : { priority: spec.priority }),
    ...(spec.files
      ? {
          files: spec.files.map(({ mode, ...file }) => ({
            ...file,
            ...(mode === undefined ? {} : { mode: mode.toString(8).padStart(4, '0') }),
          })),
        }
      : {}),
    ...(spec.setup ? { setup: spec.setup } : {}),
    ...(spec.part ? { part: spec.part } : {}),
    ...(spec.setupTimeoutSeconds ? { setup_timeout_seconds: spec.setupTimeoutSeconds } : {}),
    ...(spec.checkpointSeconds === undefined ? {} : { checkpoint_seconds: spec.checkpointSeconds }),
    ...checksRequest(spec),
    ...(spec.artifacts ? { artifacts: spec.artifacts } : {}),
    ...(spec.egress ? { egress: spec.egress } : {}),
    ...(spec.setupEgress ? { setup_egress: spec.setupEgress } : {}),
    ...(spec.sandbox ? { sandbox: spec.sandbox } : {}),
    ...(spec.keepSandbox ? { keep_sandbox: true } : {}),
    ...(spec.mode ? { mode: spec.mode } : {}),
    ...(spec.holdSandboxSeconds === undefined ? {} : { hold_sandbox_seconds: spec.holdSandboxSeconds }),
    ...(spec.planExpirySeconds ? { plan_expiry_seconds: spec.planExpirySeconds } : {}),
    ...(spec.ask ? { ask: spec.ask } : {}),
    ...(spec.questionExpirySeconds ? { question_expiry_seconds: spec.questionExpirySeconds } : {}),
    ...(spec.project ? { project: spec.project } : {}),
    ...(spec.author ? { author: spec.author } : {}),
    ...(spec.committer ? { committer: spec.committer } : {}),
    ...(spec.sign === undefined ? {} : { sign: spec.sign }),
    ...(spec.environmentFile ? { environment_file: spec.environmentFile } : {}),
    ...(spec.useSnapshot === false ? { use_snapshot: false } : {}),
    ...(spec.runtimeClassName ? { runtime_class_name: spec.runtimeClassName } : {}),
    ...(spec.minimumTier ? { minimum_tier: spec.minimumTier } : {}),
    ...(metadata.labels ? { labels: ownLabels(metadata.labels) } : {}),
  }
}

/** Labels that were asked for; those of project and group are the platform's. */
function ownLabels(labels: Record<string, string>): Record<string, string> {
  const { [projectLabel]: _, [groupLabel]: __, ...own } = labels
  return own
}

export type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

export function definedOnly<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as Defined<T>
}

/** `submodules` of a request, which may be a boolean, as an AgentTask has it, and back. */
export const submoduleDepths: Readonly<Record<string, 'none' | 'direct' | 'recursive'>> = {
  true: 'direct',
  false: 'none',
  recursive: 'recursive',
}
export const submoduleWords = { none: false, direct: true, recursive: 'recursive' } as const
