import type { TaskTimes, TaskView } from '@corral/protocol'
import type { AgentTask, Stored } from '@corral/resources'
import { taskLimits } from './agent-task/plan.js'
import { phaseOf } from './agent-task/stages.js'
import { branchOf } from './steps/step.js'

/** A task as the API shows it: snake_case, the phase derived from the conditions. */
export function taskView(task: Stored<AgentTask>): TaskView {
  const { spec, status, metadata } = task
  const { sandbox, usage, diffStat } = status ?? {}
  return {
    id: metadata.name,
    status: phaseOf(task),
    repo: spec.repository.url,
    task: spec.prompt,
    agent: spec.agent,
    timeout_seconds: spec.timeoutSeconds ?? taskLimits.defaultTimeoutSeconds,
    created_at: metadata.creationTimestamp,
    branch: status?.branch ?? branchOf(task),
    ...pick({
      base_branch: status?.baseBranch ?? spec.baseBranch,
      base_commit: status?.baseCommit,
      commit: status?.commit,
      pushed: status?.pushed,
      outcome: status?.outcome,
      cause: status?.cause,
      exit_code: status?.exitCode,
      egress: status?.egress ?? spec.egress,
      labels: metadata.labels,
      retry_of: spec.retryOf,
      last_event_sequence: status?.lastEventSequence,
    }),
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
            ...pick({ name: sandbox.sandboxName, pod: sandbox.podName, isolation: sandbox.isolation }),
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
    ...(status?.times ? { times: timesView(status.times) } : {}),
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
