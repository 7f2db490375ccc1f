import { credentialInUrl, redactUrls, type TaskTimes, type TaskView } from '@corral/protocol'
import { type AgentTask, defaultTaskTimeoutSeconds, type Stored } from '@corral/resources'
import { agentChoiceFrom } from './agent-spec.js'
import { checksView } from './checks/task-checks.js'
import { holdLeftMs } from './held/hold.js'
import { decisionOf, type PlanDecision } from './plan-approval/plan-decision.js'
import { messagesView, questionsView } from './questions/talk-view.js'
import { branchOf } from './task-state/branch-of.js'
import { groupViewOf } from './task-state/group.js'
import { isFinished, phaseOf, stage } from './task-state/stages.js'

/** A task as the API shows it: snake_case, the phase derived from the conditions. */
export function taskView(
  task: Stored<AgentTask>,
  queue?: { position: number; reason: string } | undefined,
  now: Date = new Date(),
): TaskView {
  const { spec, status, metadata } = task
  const { sandbox, usage, diffStat } = status ?? {}
  return {
    id: metadata.name,
    status: phaseOf(task),
    // An object that came past the task API may hold what the API would have refused.
    repo: credentialInUrl(spec.repository.url) ? redactUrls(spec.repository.url) : spec.repository.url,
    task: spec.prompt,
    agent: agentChoiceFrom(spec.agent),
    timeout_seconds: spec.timeoutSeconds ?? defaultTaskTimeoutSeconds,
    created_at: metadata.creationTimestamp,
    ...pick({
      // A branch that was not pushed is nowhere to be found: only its wanted name is known.
      branch: status?.pushed ? (status.branch ?? branchOf(task)) : undefined,
      new_branch: spec.newBranch,
      base_branch: status?.baseBranch ?? spec.baseBranch,
      base_commit: status?.baseCommit,
      commit: status?.commit,
      pushed: status?.pushed,
      outcome: status?.outcome,
      cause: status?.cause,
      warnings: status?.warnings,
      artifacts: status?.artifacts,
      exit_code: status?.exitCode,
      egress: status?.egress ?? spec.egress,
      checks: checksView(task),
      refused: status?.refused,
      environment_file: status?.environment?.source ?? spec.environmentFile,
      labels: metadata.labels,
      project: spec.project,
      author: spec.author,
      committer: spec.committer,
      sign: spec.sign,
      runtime_class_name: spec.runtimeClassName,
      minimum_tier: spec.minimumTier,
      retry_of: spec.retryOf,
      retry_from: spec.retry?.from,
      mode: spec.mode,
      hold_sandbox_seconds: spec.holdSandboxSeconds,
      priority: spec.priority,
      plan: status?.plan && planView(status.plan, decisionOf(task)),
      messages: messagesView(task),
      ask: spec.ask,
      questions: questionsView(task),
      continues: spec.continues?.task,
      thread: spec.continues?.thread,
      group: spec.group && groupViewOf(spec.group),
      session: status?.session && { id: status.session.id, size_bytes: status.session.sizeBytes },
      instructions: spec.instructions,
      last_event_sequence: status?.lastEventSequence,
    }),
    ...(spec.mcpServers ? { mcp_servers: spec.mcpServers.map(shownServer) } : {}),
    ...(spec.limits
      ? { limits: pick({ max_tokens: spec.limits.maxTokens, max_cost_usd: spec.limits.maxCostUsd }) }
      : {}),
    ...(diffStat
      ? {
          diff_stat: {
            files_changed: diffStat.filesChanged,
            insertions: diffStat.insertions,
            deletions: diffStat.deletions,
          },
        }
      : {}),
    ...(sandbox
      ? {
          sandbox: {
            claim: sandbox.claimName,
            ...pick({
              name: sandbox.sandboxName,
              pod: sandbox.podName,
              isolation: sandbox.isolation,
              provider: sandbox.provider,
              held_until: holdLeftMs(task, now) === undefined ? undefined : sandbox.heldUntil,
              taken_from: sandbox.takenFrom,
            }),
          },
        }
      : {}),
    ...(usage
      ? {
          usage: {
            input_tokens: usage.inputTokens,
            output_tokens: usage.outputTokens,
            cache_read_tokens: usage.cacheReadTokens,
            cache_write_tokens: usage.cacheWriteTokens,
            ...pick({ model: usage.model, cost_usd: usage.costUsd }),
          },
        }
      : {}),
    ...(queue ? { queue: { ...queue, since: status?.times?.queuedAt ?? metadata.creationTimestamp } } : {}),
    ...waitingView(task),
    ...(status?.times ? { times: timesView(status.times) } : {}),
  }
}

function waitingView(task: AgentTask): Pick<TaskView, 'waiting'> {
  const ready = stage(task, 'SandboxReady')
  if (ready?.status !== 'Unknown' || isFinished(task)) return {}
  return { waiting: { reason: ready.reason, message: ready.message, since: ready.lastTransitionTime } }
}

/** A decision counts as soon as it was taken, before the controller has carried it out. */
function planView(
  plan: NonNullable<NonNullable<AgentTask['status']>['plan']>,
  decision: PlanDecision | undefined,
): NonNullable<TaskView['plan']> {
  const { revision, proposedAt, expiresAt } = plan
  const text = decision?.plan ?? plan.text
  const { verdict = plan.verdict, remark = plan.remark, at: decidedAt = plan.decidedAt } = decision ?? {}
  return {
    ...{ revision, text, proposed_at: proposedAt, expires_at: expiresAt },
    ...pick({ verdict, remark, decided_at: decidedAt }),
  }
}

/** Variables and headers by name only: what they hold may be secret. */
function shownServer(server: NonNullable<AgentTask['spec']['mcpServers']>[number]): { name: string } {
  const { env, headers, ...shown } = server
  return {
    ...shown,
    ...(env ? { env: Object.keys(env) } : {}),
    ...(headers ? { headers: Object.keys(headers) } : {}),
  }
}

function timesView(times: NonNullable<NonNullable<AgentTask['status']>['times']>): TaskTimes {
  const entries = Object.entries(times).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ])
  return Object.fromEntries(entries) as TaskTimes
}

type Picked<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function pick<T extends object>(values: T): Picked<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Picked<T>
}
