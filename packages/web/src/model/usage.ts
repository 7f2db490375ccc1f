import type { TaskSummary } from '@corral/protocol'
import { hasEnded } from './status-words.js'

export interface UsageRow {
  readonly name: string
  readonly tasks: number
  /** Of the tasks, those that are over. */
  readonly ended: number
  readonly succeeded: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
  /** Tasks whose cost is unknown: their model has no price. */
  readonly unpriced: number
  readonly agentMs: number
}

/** What tasks used, by whatever `nameOf` says of them, the most expensive first. */
export function usageBy(tasks: Iterable<TaskSummary>, nameOf: (task: TaskSummary) => string): UsageRow[] {
  const rows = new Map<string, UsageRow>()
  for (const task of tasks) {
    const name = nameOf(task)
    const row = rows.get(name) ?? emptyRow
    const { usage, times } = task
    const [from, to] = [times?.running_at, times?.agent_finished_at]
    rows.set(name, {
      name,
      tasks: row.tasks + 1,
      ended: row.ended + (hasEnded(task.status) ? 1 : 0),
      succeeded: row.succeeded + (task.status === 'SUCCEEDED' ? 1 : 0),
      inputTokens: row.inputTokens + (usage?.input_tokens ?? 0),
      outputTokens: row.outputTokens + (usage?.output_tokens ?? 0),
      costUsd: row.costUsd + (usage?.cost_usd ?? 0),
      unpriced: row.unpriced + (usage && usage.cost_usd === undefined ? 1 : 0),
      agentMs: row.agentMs + (from && to ? Date.parse(to) - Date.parse(from) : 0),
    })
  }
  return [...rows.values()].sort(
    (one, other) => other.costUsd - one.costUsd || other.tasks - one.tasks || one.name.localeCompare(other.name),
  )
}

/** The part of the tasks that are over that succeeded, in words; a dash while none is over. */
export const successOf = ({ ended, succeeded }: Pick<UsageRow, 'ended' | 'succeeded'>): string =>
  ended === 0 ? '–' : `${Math.round((100 * succeeded) / ended)} %`

/** Tasks of each of the last days, the oldest first, those without one included. */
export function days(tasks: Iterable<TaskSummary>, count: number, nowMs: number): { day: string; row: UsageRow }[] {
  const byDay = new Map(usageBy(tasks, ({ created_at }) => created_at.slice(0, 10)).map((row) => [row.name, row]))
  return Array.from({ length: count }, (_, index) => {
    const day = new Date(nowMs - (count - 1 - index) * 86_400_000).toISOString().slice(0, 10)
    return { day, row: byDay.get(day) ?? { ...emptyRow, name: day } }
  })
}

const emptyRow: UsageRow = {
  name: '',
  tasks: 0,
  ended: 0,
  succeeded: 0,
  inputTokens: 0,
  outputTokens: 0,
  costUsd: 0,
  unpriced: 0,
  agentMs: 0,
}
