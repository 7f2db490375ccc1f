import type { AgentTask, AgentTaskStatus, Condition, Stored } from '@corral/resources'
import { phaseOf, stage } from '../task-state/stages.js'
import { agentRunOf } from './agent-run.js'
import type { PlanDecision } from './plan-decision.js'

/** Stages of a sandbox that a task without one has to pass again. */
const sandboxStages = new Set(['Admitted', 'SandboxReady', 'RepositoryReady', 'SetupDone'])
const agentStages = new Set(['AgentStarted', 'AgentFinished'])

/** The agent has its plan: the task waits, and its timeout stands still until the agent runs again. */
export function awaitingApproval(task: Stored<AgentTask>, now: Date): Stored<AgentTask> {
  const run = agentRunOf(task)
  const { runningAt, agentFinishedAt } = task.status?.times ?? {}
  const ranMs = runningAt && agentFinishedAt ? Math.max(0, Date.parse(agentFinishedAt) - Date.parse(runningAt)) : 0
  const message = `revision ${task.status?.plan?.revision ?? 1} waits for a decision`
  return changed(task, {
    run: { ...run, usedMs: run.usedMs + ranMs },
    conditions: [
      ...without(task, agentStages),
      condition(task, { status: 'Unknown', reason: 'WaitingForApproval', message }, now),
    ],
  })
}

/** The decision is recorded, and the next run of the agent begins. */
export function nextRun(
  task: Stored<AgentTask>,
  decision: PlanDecision,
  eventsBefore: number,
  now: Date,
): Stored<AgentTask> {
  const run = agentRunOf(task)
  const isApproved = decision.verdict === 'approve'
  const approved = condition(task, { status: 'True', reason: 'Approved', message: decision.remark ?? 'approved' }, now)
  const others = without(task, new Set([...agentStages, 'PlanApproved']))
  const { plan, times } = task.status ?? {}
  return changed(task, {
    run: { number: run.number + 1, mode: isApproved ? 'work' : 'plan', eventsBefore, usedMs: run.usedMs },
    conditions: isApproved ? [...others, approved] : others,
    ...(plan ? { plan: decided(plan, decision) } : {}),
    ...(isApproved ? { times: { ...times, planApprovedAt: now.toISOString() } } : {}),
  })
}

/** The sandbox is given back: the task is admitted anew when it goes on. */
export function released(task: Stored<AgentTask>): Stored<AgentTask> {
  const { sandbox: _sandbox, attempt: _attempt, ...status } = task.status ?? {}
  return changed({ ...task, status }, { conditions: without(task, sandboxStages) })
}

function decided(
  plan: NonNullable<AgentTaskStatus['plan']>,
  { verdict, plan: edited, remark, at }: PlanDecision,
): NonNullable<AgentTaskStatus['plan']> {
  return { ...plan, text: edited ?? plan.text, verdict, decidedAt: at, ...(remark ? { remark } : {}) }
}

function without(task: AgentTask, types: ReadonlySet<string>): Condition[] {
  return (task.status?.conditions ?? []).filter(({ type }) => !types.has(type))
}

function condition(
  task: Stored<AgentTask>,
  { status, reason, message }: Pick<Condition, 'status' | 'reason' | 'message'>,
  now: Date,
): Condition {
  const { generation } = task.metadata
  return {
    ...{ type: 'PlanApproved', status, reason, message: message.slice(0, 1024) },
    lastTransitionTime: `${now.toISOString().slice(0, 19)}Z`,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  }
}

function changed(task: Stored<AgentTask>, status: Partial<AgentTaskStatus>): Stored<AgentTask> {
  const next = { ...task, status: { ...task.status, ...status } }
  return { ...next, status: { ...next.status, phase: phaseOf(next) } }
}

/** Whether the agent ended with a plan that is to be put before a person. */
export function hasProposedPlan(task: AgentTask): boolean {
  const finished = stage(task, 'AgentFinished')
  return finished?.status === 'True' && finished.reason === 'Planned'
}
