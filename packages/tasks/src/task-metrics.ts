import type { ModelCallEvent } from '@corral/protocol'
import type { AgentTask, AgentTaskStatus, Stored } from '@corral/resources'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { hasPassed, isActive, isFinished } from './task-state/stages.js'

/** What the platform counts about tasks. Labels come from small fixed sets. */
export interface TaskMetrics {
  created(): void
  finished(task: Stored<AgentTask>, code: string): void
  /** A call to a model is over. */
  called(call: ModelCallEvent): void
}

export function promTaskMetrics(registry: Registry): TaskMetrics {
  const registers = [registry]
  const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
    new Counter({ name, help, labelNames, registers })
  const created = counter('corral_tasks_created_total', 'Tasks accepted')
  const ended = counter('corral_tasks_finished_total', 'Tasks at their end, by cause; Succeeded has none', [
    'code',
    'agent',
  ])
  const duration = new Histogram({
    name: 'corral_task_duration_seconds',
    help: 'From accepted to recorded',
    labelNames: ['code'],
    buckets: [1, 5, 15, 60, 300, 900, 1800, 3600],
    registers,
  })
  const stages = new Histogram({
    name: 'corral_task_stage_duration_seconds',
    help: 'What each stage of an ended task took',
    labelNames: ['stage'],
    buckets: [0.1, 0.5, 1, 2, 5, 15, 60, 300, 900, 1800, 3600],
    registers,
  })
  const calls = counter('corral_model_calls_total', 'Calls to models through the broker, by HTTP status', [
    'provider',
    'status',
  ])
  const tokens = counter('corral_model_tokens_total', 'Tokens of those calls', ['provider', 'direction'])
  const cost = counter('corral_model_cost_usd_total', 'What those calls cost, where the price is known', ['provider'])
  return {
    created: () => created.inc(),
    finished(task, code) {
      ended.inc({ code, agent: task.spec.agent.name })
      duration.observe({ code }, (Date.now() - Date.parse(task.metadata.creationTimestamp)) / 1000)
      for (const [stage, seconds] of stageSeconds(task.status?.times ?? {})) stages.observe({ stage }, seconds)
    },
    called(call) {
      const { provider } = call
      calls.inc({ provider, status: String(call.status) })
      tokens.inc({ provider, direction: 'in' }, call.input_tokens)
      tokens.inc({ provider, direction: 'out' }, call.output_tokens)
      if (call.cost_usd !== undefined) cost.inc({ provider }, call.cost_usd)
    },
  }
}

type Times = NonNullable<AgentTaskStatus['times']>

const stageBounds: readonly (readonly [stage: string, from: keyof Times, to: keyof Times])[] = [
  ['queue', 'queuedAt', 'provisioningAt'],
  ['sandbox', 'provisioningAt', 'sandboxReadyAt'],
  ['repository', 'sandboxReadyAt', 'repositoryReadyAt'],
  ['setup', 'repositoryReadyAt', 'setupDoneAt'],
  ['agent', 'runningAt', 'agentFinishedAt'],
  ['result', 'agentFinishedAt', 'resultCollectedAt'],
  ['push', 'resultCollectedAt', 'pushedAt'],
]

/** The stages a task went through and what each took. A clock that was set back takes no time. Pure. */
export function stageSeconds(times: Times): [stage: string, seconds: number][] {
  return stageBounds.flatMap(([stage, from, to]): [string, number][] => {
    const [start, end] = [times[from], times[to]]
    return start && end ? [[stage, Math.max(0, (Date.parse(end) - Date.parse(start)) / 1000)]] : []
  })
}

/** How long the queue is and what runs, counted from the tasks at every scrape, so that it cannot drift. */
export function promTaskGauges(
  registry: Registry,
  options: { list: () => readonly Stored<AgentTask>[]; now: () => Date },
): void {
  const gauge = (name: string, help: string, read: (tasks: readonly Stored<AgentTask>[]) => number): void => {
    const made: Gauge = new Gauge({
      name,
      help,
      registers: [registry],
      collect: () => made.set(read(options.list())),
    })
  }
  gauge('corral_tasks_waiting', 'Tasks that wait for a place', (tasks) => tasks.filter(isWaiting).length)
  gauge('corral_tasks_running', 'Tasks that hold a place', (tasks) => tasks.filter(isActive).length)
  gauge(
    'corral_tasks_oldest_waiting_seconds',
    'How long the task has waited that waits longest; 0 for none',
    (tasks) => {
      const since = tasks.filter(isWaiting).map(({ metadata }) => Date.parse(metadata.creationTimestamp))
      return since.length === 0 ? 0 : Math.max(0, (options.now().getTime() - Math.min(...since)) / 1000)
    },
  )
}

function isWaiting(task: Stored<AgentTask>): boolean {
  return !isFinished(task) && !hasPassed(task, 'Admitted')
}
